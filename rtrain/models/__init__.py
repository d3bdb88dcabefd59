"""The models that ship with rtrain, by framework: what a config names, `rtrain.models.torch.ResNet` say."""
