// Nothing but the precompiled base/libtorch.h: the other libraries reuse it.
