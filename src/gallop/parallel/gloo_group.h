#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

// Internal to parallel/c10d_collectives.cpp.
namespace gallop::parallel {

/// The interfaces listed in c10d's environment variable, or else the address from which the store
/// at `host` is reached, as the host's own name may resolve to an address that others cannot reach.
std::vector<std::shared_ptr<gloo::transport::Device>> devices_toward(const std::string& host);

class GlooGroup final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  /// Other processes fail at once; own collectives in flight may wait until their timeout.
  void close_connections();
};

/// The message without locations in LibTorch's sources.
std::string reason_of(const std::exception& error);

/// At least one, as 0 stands for no timeout in c10d.
std::chrono::milliseconds milliseconds_of(double seconds);

/// Identifies the memory of a tensor, also of one without elements.
const void* key_of(const at::Tensor& tensor);

/// Records a collective in the thread of Gloo that has run it, after what it ran before.
void record_when_done(c10d::Work& work, const char* name, int64_t begin_ns);

/// NCCL would use the first interface that is not loopback.
void keep_nccl_to_interface_toward(const std::string& host);

/// Keeps a group whose threads may wait for a missing process until this process exits.
void abandon(c10::intrusive_ptr<GlooGroup> group);

}  // namespace gallop::parallel
