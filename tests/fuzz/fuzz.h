#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What libFuzzer calls, and tests/fuzz/driver.cpp as well: one input to a parser. An input that
/// the parser refuses with its documented error is fine; anything else must end the program.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

/// Valid inputs that the driver mutates.
std::vector<std::string> fuzz_seeds();
