#pragma once

namespace gallop::train {

/// Registers LibTorch's operators for fake_accelerator(), as far as a small network's step needs
/// them. Each computes at once, after what its stream has to do before; only a number that is read
/// on the host counts as a wait.
void register_fake_operators();

}  // namespace gallop::train
