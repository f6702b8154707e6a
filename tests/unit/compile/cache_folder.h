#pragma once

#include <cstdlib>
#include <string>

#include "gallop/base/file.h"

namespace gallop::compile {

/// A folder for the kernels of one test, removed at its end.
class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "gallop-compile-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~CacheFolder() { fs::remove_all(root_); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const fs::path& root() const { return root_; }
  fs::path path() const { return root_ / "kernels"; }

 private:
  fs::path root_;
};

}  // namespace gallop::compile
