#pragma once

#include <span>

namespace gallop::compile {

/// The text of a header at build time, and its path as in #include directives.
struct EmbeddedHeader {
  const char* path;
  const char* text;
};

/// The headers of generated kernels, compiled in by cmake/Headers.cmake.
std::span<const EmbeddedHeader> embedded_headers();

}  // namespace gallop::compile
