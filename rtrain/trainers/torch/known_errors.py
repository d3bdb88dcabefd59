"""What to try after errors of PyTorch that say too little themselves."""

HINTS = (
    (
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
        "Rows of {1} numbers reach a layer made for {2}: change the layer's in_features, or reshape before it.",
    ),
    (
        r"expected input\[[^\]]*\] to have (\d+) channels, but got (\d+) channels",
        "Images have {1} channels, the layer is made for {0}: change its in_channels.",
    ),
    (
        "all tensors to be on the same device",
        "Move what the code makes itself to the device of its input: tensor.to(x.device).",
    ),
    (
        r"Target (-?\d+) is out of bounds|device-side assert triggered",
        "A label is outside of what the model predicts: compare num_classes with the labels.",
    ),
    (
        "Trying to backward through the graph a second time",
        "A tensor of the step before is used again: detach() it, or compute it again.",
    ),
    (
        "does not require grad and does not have a grad_fn",
        "Nothing that is trained leads to the loss: look for detach(), no_grad() or .item() on the way.",
    ),
    (
        r"(?:must have|to have) the same dtype|expected scalar type (\w+) but found (\w+)",
        "Convert one of the two: tensor.to(other.dtype).",
    ),
    (
        r"DataLoader worker \(pid.*(?:killed by signal|exited unexpectedly)",
        "A process of the DataLoader crashed or was killed. To see the line, set its num_workers to 0.",
    ),
)
