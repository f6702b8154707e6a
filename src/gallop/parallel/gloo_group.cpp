#include "gallop/parallel/gloo_group.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <utility>

#include <c10/util/Exception.h>

#include "gallop/base/clock.h"
#include "gallop/base/socket.h"
#include "gallop/base/trace.h"

namespace gallop::parallel {

std::vector<std::shared_ptr<gloo::transport::Device>> devices_toward(const std::string& host) {
  std::vector<std::shared_ptr<gloo::transport::Device>> devices;
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  std::istringstream list(names != nullptr ? names : "");
  for (std::string name; std::getline(list, name, ',');) {
    addresses_of_interface(name);  // Throws if the interface does not exist.
    devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name));
  }
  if (devices.empty()) {
    devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address_toward(host)));
  }
  return devices;
}

void GlooGroup::close_connections() {
  for (const auto& context : contexts_) context->closeConnections();
}

std::string reason_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error != nullptr ? torch_error->msg() : error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) text.erase(0, std::min(text.find("] ") + 2, text.size()));
  while (text.ends_with('.')) text.pop_back();
  return text;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(1e3 * seconds)));
}

const void* key_of(const at::Tensor& tensor) {
  return static_cast<const char*>(tensor.storage().data()) +
         tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
}

void record_when_done(c10d::Work& work, const char* name, int64_t begin_ns) {
  work.getFuture()->addCallback([begin_ns, name](c10::ivalue::Future& /*done*/) {
    thread_local int64_t last_end_ns = 0;
    const int64_t end_ns = monotonic_nanoseconds();
    record_span(SpanKind::kCommunication, name, std::max(begin_ns, last_end_ns), end_ns);
    last_end_ns = end_ns;
  });
}

// "=" makes it match the whole name.
void keep_nccl_to_interface_toward(const std::string& host) {
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  const std::string interface = names != nullptr ? names : interface_of(address_toward(host));
  setenv("NCCL_SOCKET_IFNAME", ("=" + interface).c_str(), /*overwrite=*/0);
}

void abandon(c10::intrusive_ptr<GlooGroup> group) {
  static std::mutex mutex;
  static auto& abandoned = *new std::vector<c10::intrusive_ptr<GlooGroup>>;
  group->close_connections();
  const std::lock_guard lock(mutex);
  abandoned.push_back(std::move(group));
}

}  // namespace gallop::parallel
