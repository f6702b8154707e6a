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

void* FunctionFinder::address_of(const char* name) {
  void* address = dlsym(library_, name);
  if (address == nullptr && missing_.empty()) missing_ = name;
  return address;
}

}  // namespace gallop
