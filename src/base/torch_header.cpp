// Nothing but the precompiled torch/torch.h: the other libraries reuse it.
