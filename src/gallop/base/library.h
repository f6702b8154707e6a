#pragma once

#include <memory>
#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// Loads a shared library by its path or name; null on failure, with the reason in `error`.
std::shared_ptr<void> load_library(const fs::path& path, std::string& error);

/// The path of a library of Gallop that is loaded on demand: in the program's folder, or the folder
/// lib beside it. Only its name if it is in none of them, for the system's library path.
fs::path find_program_library(const std::string& name);

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
