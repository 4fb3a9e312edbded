#pragma once

namespace lacuna {

/// Calls once, on this thread, those of LibTorch's functions of a tensor (exp, sqrt, ...) that Lacuna uses. Call it
/// before the first of them runs on several threads: MKL chooses a function's loops in its first call, and where two
/// threads make that call at once, one of them may compute its share by loops of low accuracy (a thousand units in the
/// last place, https://github.com/pytorch/pytorch/issues/188792).
void settle_vector_functions();

}  // namespace lacuna
