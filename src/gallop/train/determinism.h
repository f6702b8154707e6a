#pragma once

#include <string>
#include <string_view>

namespace gallop::train {

/// The operator that LibTorch's message says has no deterministic implementation; empty for other
/// messages.
std::string nondeterministic_operator(std::string_view message);

/// Rethrows the current exception; as UsageError if it is LibTorch's that an operator has no
/// deterministic implementation.
[[noreturn]] void rethrow_nondeterminism();

}  // namespace gallop::train
