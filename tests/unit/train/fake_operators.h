#pragma once

namespace gallop::train {

/// Registers the LibTorch operators for fake_accelerator() that a small network's step needs. Each
/// computes immediately, after the pending work of its stream; only reading an element on the host
/// counts as a wait.
void register_fake_operators();

}  // namespace gallop::train
