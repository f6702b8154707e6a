#pragma once

#include <filesystem>

namespace gallop {

/// The checkout's folder tests/fixtures.
std::filesystem::path fixtures();

}  // namespace gallop
