#pragma once

#include <memory>
#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// Loads a shared library by its path or name; null on failure, with the reason in `error`.
std::shared_ptr<void> load_library(const fs::path& path, std::string& error);

/// Looks up functions of a library.
class FunctionFinder {
 public:
  /// The library must stay loaded while its functions are used.
  explicit FunctionFinder(void* library) : library_(library) {}

  /// Null if the function does not exist.
  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(address_of(name));
  }

  /// The first function that was not found, or empty.
  const std::string& missing() const { return missing_; }

 private:
  void* address_of(const char* name);

  void* library_;
  std::string missing_;
};

}  // namespace gallop
