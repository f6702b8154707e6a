#include "gallop/base/library.h"

#include <dlfcn.h>

namespace gallop {

std::shared_ptr<void> load_library(const fs::path& path, std::string& error) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    error = dlerror();
    return nullptr;
  }
  return {library, [](void* handle) { dlclose(handle); }};
}

fs::path find_program_library(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  // The full program of 'gallop' is in libexec/gallop/ beside either; tests are in a folder below.
  const fs::path above = folder.parent_path(), root = above.parent_path();
  for (const fs::path& place :
       {folder, above, above / "lib", above / "lib64", root, root / "lib", root / "lib64"}) {
    if (!error && fs::exists(place / name, error)) return place / name;
  }
  return name;
}

void* FunctionFinder::address_of(const char* name) {
  void* address = dlsym(library_, name);
  if (address == nullptr && missing_.empty()) missing_ = name;
  return address;
}

}  // namespace gallop
