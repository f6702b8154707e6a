#pragma once

#include <memory>
#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// Loads a library, by its path or by the name that the system knows it by; null where the system
/// cannot, then `error` is its reason.
std::shared_ptr<void> load_library(const fs::path& path, std::string& error);

/// Finds functions of a library.
class FunctionFinder {
 public:
  /// The library must stay loaded for as long as a function is called.
  explicit FunctionFinder(void* library) : library_(library) {}

  /// Null where it is not there.
  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(address_of(name));
  }

  /// The first that was not there, or empty.
  const std::string& missing() const { return missing_; }

 private:
  void* address_of(const char* name);

  void* library_;
  std::string missing_;
};

}  // namespace gallop
