"""What a ``_target_`` that another account wrote may name: models and layers, each by its exact public name.

They take numbers, texts that say which of a few ways, and each other. Not listed, though public: base classes, what is
called with a function (Lambda, wrappers of other frameworks' modules), what takes a path or URL (vocabularies, saved
models, pretrained weights), and all other functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OWN = {
    "rtrain.models.torch": "GPT MLP ResNet",
    "rtrain.models.lightning": "Classifier",
    "rtrain.models.jax": "CNN MLP",
    "rtrain.models.keras": "cnn mlp",
}
TORCH = {
    "torch.nn": """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d
    BatchNorm3d Bilinear CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d
    ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss
    CosineSimilarity CrossEntropyLoss CrossMapLRN2d Dropout Dropout1d Dropout2d Dropout3d ELU Embedding EmbeddingBag
    FeatureAlphaDropout Flatten Fold FractionalMaxPool2d FractionalMaxPool3d GELU GLU GRU GRUCell GaussianNLLLoss
    GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity InstanceNorm1d
    InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LSTM LSTMCell LayerNorm LazyBatchNorm1d
    LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
    LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LeakyReLU Linear
    LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d
    MaxUnpool2d MaxUnpool3d Mish ModuleDict ModuleList MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss
    MultiheadAttention NLLLoss PReLU PairwiseDistance ParameterDict ParameterList PixelShuffle PixelUnshuffle
    PoissonNLLLoss RMSNorm RNN RNNCell RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d
    ReplicationPad2d ReplicationPad3d SELU Sequential SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin
    Softplus Softshrink Softsign SyncBatchNorm Tanh Tanhshrink Threshold Transformer TransformerDecoder
    TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer TripletMarginLoss Unflatten Unfold Upsample
    UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
    """,
}
BUILDERS = {
    "torchvision.models": """
    alexnet convnext_base convnext_large convnext_small convnext_tiny densenet121 densenet161 densenet169 densenet201
    efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5 efficientnet_b6
    efficientnet_b7 efficientnet_v2_l efficientnet_v2_m efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5
    mnasnet0_75 mnasnet1_0 mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_16gf regnet_x_1_6gf
    regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf regnet_y_128gf regnet_y_16gf regnet_y_1_6gf
    regnet_y_32gf regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf resnet101 resnet152 resnet18 resnet34
    resnet50 resnext101_32x8d resnext101_64x4d resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5
    shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_b swin_s swin_t swin_v2_b swin_v2_s swin_v2_t vgg11 vgg11_bn
    vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 vit_h_14 vit_l_16 vit_l_32 wide_resnet101_2
    wide_resnet50_2
    """,
}
"""Functions that build a model without trained weights, unless their arguments name some."""
_TRANSFORMS = """
    CenterCrop ColorJitter Compose ConvertImageDtype ElasticTransform FiveCrop GaussianBlur Grayscale Normalize Pad
    RandomAdjustSharpness RandomAffine RandomAutocontrast RandomCrop RandomEqualize RandomErasing RandomGrayscale
    RandomHorizontalFlip RandomInvert RandomPerspective RandomPosterize RandomResizedCrop RandomRotation RandomSolarize
    RandomVerticalFlip Resize TenCrop
    """
TORCHVISION = {
    "torchvision.ops": "DropBlock2d FrozenBatchNorm2d Permute SqueezeExcitation StochasticDepth",
    "torchvision.transforms": _TRANSFORMS,
    "torchvision.transforms.v2": _TRANSFORMS,
}
KERAS = {
    "keras": "Sequential",
    "keras.models": "Sequential",
    "keras.layers": """
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention AugMix
    AutoContrast Average AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D
    BatchNormalization Bidirectional CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D
    Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Convolution1D Convolution1DTranspose
    Convolution2D Convolution2DTranspose Convolution3D Convolution3DTranspose Cropping1D Cropping2D Cropping3D CutMix
    Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Equalization Flatten GRU
    GRUCell GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
    GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D
    GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing Hashing Identity
    InputLayer LSTM LSTMCell LayerNormalization LeakyReLU Masking MaxPool1D MaxPool2D MaxPool3D MaxPooling1D
    MaxPooling2D MaxPooling3D Maximum MelSpectrogram Minimum MixUp MultiHeadAttention Multiply Normalization PReLU
    Permute Pipeline RMSNormalization RNN RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter
    RandomContrast RandomCrop RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale
    RandomHue RandomInvert RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness
    RandomShear RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding
    STFTSpectrogram SeparableConv1D SeparableConv2D SeparableConvolution1D SeparableConvolution2D SimpleRNN
    SimpleRNNCell Softmax Solarization SpatialDropout1D SpatialDropout2D SpatialDropout3D SpectralNormalization
    StackedRNNCells Subtract TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D
    ZeroPadding2D ZeroPadding3D
    """,
    "keras.losses": """
    BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalFocalCrossentropy
    CategoricalHinge Circle CosineSimilarity Dice Hinge Huber KLDivergence LogCosh MeanAbsoluteError
    MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson SparseCategoricalCrossentropy
    SquaredHinge Tversky
    """,
    "keras.initializers": """
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones Orthogonal
    RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros
    """,
    "keras.regularizers": "L1 L1L2 L2 OrthogonalRegularizer",
    "keras.constraints": "MaxNorm MinMaxNorm NonNeg UnitNorm",
}
FLAX = {
    "flax.linen": """
    BatchNorm Bidirectional Conv ConvLSTMCell ConvLocal ConvTranspose Dense DenseGeneral Dropout Einsum Embed GRUCell
    GroupNorm InstanceNorm LSTMCell LayerNorm MGUCell MultiHeadAttention MultiHeadDotProductAttention OptimizedLSTMCell
    PReLU RMSNorm RNN SelfAttention Sequential SimpleCell SpectralNorm WeightNorm
    """,
    "flax.nnx": """
    BatchNorm Bidirectional Conv ConvTranspose Dropout Einsum Embed GRUCell GroupNorm InstanceNorm LSTMCell LayerNorm
    Linear LinearGeneral MultiHeadAttention OptimizedLSTMCell PReLU RMSNorm RNN Sequential SimpleCell SpectralNorm
    WeightNorm
    """,
}


def _paths(*tables: Mapping[str, str]) -> Iterator[str]:
    for module, names in (item for table in tables for item in table.items()):
        yield from (f"{module}.{name}" for name in names.split())


_BUILDERS = frozenset(_paths(BUILDERS))
HARMLESS = frozenset(_paths(OWN, TORCH, TORCHVISION, BUILDERS, KERAS, FLAX))


def is_harmless(path: str) -> bool:
    """Tell whether the dotted ``path`` names something that only computes, whatever plain data it is given."""
    return path.removeprefix("tensorflow.") in HARMLESS if path.startswith("tensorflow.keras.") else path in HARMLESS


def unwanted_argument(path: str, node: Mapping[str, Any]) -> str | None:
    """Return the key of ``node`` by which a builder of models would fetch or open trained weights, or None.

    Their first positional argument means weights in old versions, and a partial one gets its arguments later.
    """
    if path not in _BUILDERS:
        return None
    named = ("weights", "pretrained", "_args_", "_partial_")
    return next((key for key, value in node.items() if value and any(one in str(key) for one in named)), None)
