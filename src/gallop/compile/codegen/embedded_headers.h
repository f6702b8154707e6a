#pragma once

#include <span>

namespace gallop::compile {

/// A header as it was when the program was built; its path is that of its #include.
struct EmbeddedHeader {
  const char* path;
  const char* text;
};

/// Those of generated kernels, written by cmake/Headers.cmake.
std::span<const EmbeddedHeader> embedded_headers();

}  // namespace gallop::compile
