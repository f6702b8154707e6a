#pragma once

#include <filesystem>

namespace gallop {

/// The checkout's folder tests/fixtures, or the folder that GALLOP_TEST_FIXTURES names.
std::filesystem::path fixtures();

/// A file in the folder of this program.
std::filesystem::path beside_program(const char* name);

}  // namespace gallop
