"""What to try after errors of PyTorch that say too little themselves."""

HINTS = (
    (
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
        "Rows of {1} numbers reach a layer for {2}: change the layer's in_features, or reshape before it.",
    ),
    (
        r"expected input\[[^\]]*\] to have (\d+) channels, but got (\d+) channels",
        "Images have {1} channels, but the layer expects {0}: change its in_channels.",
    ),
    (
        "all tensors to be on the same device",
        "Move tensors created in your code to the device of the input: tensor.to(x.device).",
    ),
    (
        r"Target (-?\d+) is out of bounds|device-side assert triggered",
        "A label is out of the model's range: compare num_classes with the labels.",
    ),
    (
        "Trying to backward through the graph a second time",
        "A tensor of the previous step is reused: detach() it, or compute it again.",
    ),
    (
        "does not require grad and does not have a grad_fn",
        "The loss does not depend on any trained weight: look for detach(), no_grad() or .item().",
    ),
    (
        r"(?:must have|to have) the same dtype|expected scalar type (\w+) but found (\w+)",
        "Convert one of them: tensor.to(other.dtype).",
    ),
    (
        r"DataLoader worker \(pid.*(?:killed by signal|exited unexpectedly)",
        "A process of the DataLoader crashed or was killed. To see the line, set its num_workers to 0.",
    ),
)
