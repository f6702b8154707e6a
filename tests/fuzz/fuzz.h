#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

/// What every driver defines: one run of a parser on some bytes, which may throw nothing but
/// DataError inside; and whole files to start from. libFuzzer calls the first.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
std::vector<std::string> fuzz_seeds();

/// Ends the program where something that must hold does not.
inline void require(bool holds) {
  if (!holds) std::abort();
}
