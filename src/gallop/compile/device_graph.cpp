#include "gallop/compile/device_graph.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::compile {

namespace {

constexpr const char* kLibrary = "libgallop_cuda.so";

// Searches the program's folder, the folder lib beside it, and the system's library path. The full
// program of 'gallop' is in libexec/gallop/ beside either.
std::string find_library() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path above = folder.parent_path(), root = above.parent_path();
  for (const fs::path& place :
       {folder, above / "lib", above / "lib64", root, root / "lib", root / "lib64"}) {
    if (!error && fs::exists(place / kLibrary, error)) return (place / kLibrary).string();
  }
  return kLibrary;
}

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph_of(const std::string& library, c10::Device device,
                                                  std::string& missing) {
  // Never unloaded: its graphs may live as long as the program.
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* make = loaded == nullptr ? nullptr : dlsym(loaded, kMakeCudaGraph);
  if (make == nullptr) {
    missing = fmt::format("steps are no CUDA graphs: {}", printable(dlerror()));
    return nullptr;
  }
  return std::unique_ptr<DeviceGraph>(reinterpret_cast<MakeCudaGraph>(make)(device.index()));
}

std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device, std::string& missing) {
  if (!device.is_cuda()) return nullptr;
  return make_device_graph_of(find_library(), device, missing);
}

}  // namespace gallop::compile
