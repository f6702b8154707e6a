#include "gallop/parallel/numeric_host_names.h"

#include <dlfcn.h>
#include <netdb.h>

#include <string_view>

namespace gallop::parallel {

// The linker takes this file, and with it the function below, from a static library.
void use_numeric_host_names() {}

}  // namespace gallop::parallel

// A program's own definition precedes that of the C library for shared libraries, too.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): reserved names
int getnameinfo(const sockaddr* address, socklen_t size, char* host, socklen_t host_size,
                char* service, socklen_t service_size, int flags) {
  static const auto of_system =
      reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  Dl_info caller{};
  if (dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr) {
    const std::string_view path = caller.dli_fname;
    if (path.substr(path.rfind('/') + 1).starts_with("libtorch")) flags |= NI_NUMERICHOST;
  }
  return of_system(address, size, host, host_size, service, service_size, flags);
}
