#pragma once

namespace lacuna {

/// To be called before the first of LibTorch's functions of a tensor (exp, sqrt, ...) runs on several threads. MKL chooses the loops of
/// each function in its first call; where two threads make that at once, one of them may compute its share of that call by loops of low
/// accuracy (a thousand units in the last place, https://github.com/pytorch/pytorch/issues/188792). This calls once, on this thread, those
/// that Lacuna uses.
void settle_vector_functions();

}  // namespace lacuna
