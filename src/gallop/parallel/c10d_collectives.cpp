#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "gallop/base/blocked_signals.h"
#include "gallop/base/error.h"
#include "gallop/base/socket.h"
#include "gallop/base/text.h"
#include "gallop/base/trace.h"
#include "gallop/launch/call_log.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/nccl_collectives.h"
#include "gallop/parallel/stall_monitor.h"
#include "gallop/parallel/store.h"

namespace gallop::parallel {

namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

// The message without locations in LibTorch's sources.
std::string reason_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error != nullptr ? torch_error->msg() : error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) text.erase(0, std::min(text.find("] ") + 2, text.size()));
  while (text.ends_with('.')) text.pop_back();
  return text;
}

// The interfaces listed in c10d's environment variable, or else the address from which the store is
// reached, as the host's own name may resolve to an address that others cannot reach.
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

// NCCL would use the first interface that is not loopback. "=" makes it match the whole name.
void keep_nccl_to_interface_toward(const std::string& host) {
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  const std::string interface = names != nullptr ? names : interface_of(address_toward(host));
  setenv("NCCL_SOCKET_IFNAME", ("=" + interface).c_str(), /*overwrite=*/0);
}

// A collective in which all processes take part.
struct NumberedCall {
  int64_t number = 0;  // From 1; the same in all processes.
  std::string what;

  std::string describe() const { return fmt::format("call {}, {}", number, what); }
};

using State = launch::Call::State;

constexpr std::chrono::seconds kBetweenLooks(1);

class GlooGroup final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  // Other processes fail at once; own collectives in flight may wait until their timeout.
  void close_connections() {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

// Keeps groups whose threads may wait for a missing process until this process exits.
void abandon(c10::intrusive_ptr<GlooGroup> group) {
  static std::mutex mutex;
  static auto& abandoned = *new std::vector<c10::intrusive_ptr<GlooGroup>>;
  group->close_connections();
  const std::lock_guard lock(mutex);
  abandoned.push_back(std::move(group));
}

// Records an all-reduce in the thread of Gloo that has run it, after what it ran before.
void record_when_done(c10d::Work& work, int64_t begin_ns) {
  work.getFuture()->addCallback([begin_ns](c10::ivalue::Future& /*done*/) {
    thread_local int64_t last_end_ns = 0;
    const int64_t end_ns = monotonic_nanoseconds();
    record_span(SpanKind::kCommunication, "all-reduce", std::max(begin_ns, last_end_ns), end_ns);
    last_end_ns = end_ns;
  });
}

class C10dCollectives final : public Collectives {
 public:
  explicit C10dCollectives(const RendezvousOptions& rendezvous)
      : rendezvous_(rendezvous), limits_(rendezvous.limits) {
    if (!rendezvous.call_logs.empty()) log_.emplace(rendezvous.call_logs, rendezvous.rank);
    try {
      connect();
    } catch (const std::exception& error) {
      if (dynamic_cast<const Error*>(&error) != nullptr) throw;
      throw DeviceError(
          fmt::format("rank {} of {} did not find all others at {} port {} within {}: {}",
                      rendezvous.rank, rendezvous.size, rendezvous.host, rendezvous.port,
                      format_duration(rendezvous.seconds), reason_of(error)));
    }
  }

  int rank() const override { return rendezvous_.rank; }
  int size() const override { return rendezvous_.size; }
  ~C10dCollectives() override {
    // The destructor would wait for all-reduces in flight.
    if (has_failed_ || !started_.empty()) abandon(std::move(group_));
  }
  C10dCollectives(const C10dCollectives&) = delete;
  C10dCollectives& operator=(const C10dCollectives&) = delete;

  void begin(Section section, int64_t step) override {
    if (gpu_ && section != Section::kStep) on_gpu([&] { gpu_->finish(); });
    section_ = section;
    step_ = step;
    stall_monitor_->begin();
  }
  void note_progress() override {
    if (is_long()) stall_monitor_->note_progress();
  }
  void set_limits(const Limits& limits) override { limits_ = limits; }
  Limits limits() const override { return limits_; }

  void all_reduce_async(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) {
      start_on_gpu("sum", tensor, &NcclCollectives::all_reduce_async);
      return;
    }
    NumberedCall call = next_call("sum", tensor);
    std::vector<at::Tensor> tensors = {tensor};
    c10d::AllreduceOptions options;
    options.timeout = limit();
    const int64_t begin_ns = is_tracing() ? monotonic_nanoseconds() : 0;
    auto work = in_time(call, [&] { return group_->allreduce(tensors, options); });
    if (begin_ns != 0) record_when_done(*work, begin_ns);
    started_.insert_or_assign(tensor.const_data_ptr(), Started{std::move(call), std::move(work)});
  }

  void wait(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) {
      on_gpu([&] { gpu_->wait(tensor); });
      return;
    }
    const auto found = started_.find(tensor.const_data_ptr());
    if (found == started_.end())
      throw InternalError("collectives: no sum of this tensor is under way");
    const Started started = std::move(found->second);
    started_.erase(found);
    in_time(started.call, [&] { wait_for(*started.work, started.call); });
    note_end(started.call, State::kDone);
  }

  void broadcast(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) {
      start_on_gpu("broadcast", tensor, &NcclCollectives::broadcast_async);
      on_gpu([&] { gpu_->wait(tensor); });
      return;
    }
    const NumberedCall call = next_call("broadcast", tensor);
    std::vector<at::Tensor> tensors = {tensor};
    c10d::BroadcastOptions options;
    options.timeout = limit();
    in_time(call, [&] { wait_for(*group_->broadcast(tensors, options), call); });
    note_end(call, State::kDone);
  }

  void check() override {
    if (gpu_) on_gpu([&] { gpu_->check(); });
  }

 private:
  struct PlacedCall {
    NumberedCall call;
    std::string place;
  };
  struct Started {
    NumberedCall call;
    c10::intrusive_ptr<c10d::Work> work;
  };

  void connect() {
    FLAGS_caffe2_log_level = c10::GLOG_ERROR;  // Errors are thrown instead of logged.
    if (!rendezvous_.store_is_there && rendezvous_.rank == 0) {
      server_.emplace(rendezvous_.host, rendezvous_.port);
    }
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(rendezvous_.port);
    options.waitWorkers = false;
    options.timeout = milliseconds_of(rendezvous_.seconds);
    auto store = c10::make_intrusive<c10d::PrefixStore>(
        "gallop/" + rendezvous_.name,
        c10::make_intrusive<c10d::TCPStore>(rendezvous_.host, options));
    stall_monitor_.emplace(store, rendezvous_.rank, rendezvous_.size, rendezvous_.clock);
    auto group_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
    group_options->threads = 2;
    // Gloo's threads write to processes that may be gone; this must fail without killing us.
    const BlockedSignals blocked = {SIGPIPE};
    group_options->devices = devices_toward(rendezvous_.host);
    group_ =
        c10::make_intrusive<GlooGroup>(store, rendezvous_.rank, rendezvous_.size, group_options);
    // A process that exits at once for its own reason must not look lost to those that are still
    // connecting.
    c10d::BarrierOptions barrier;
    barrier.timeout = options.timeout;
    group_->barrier(barrier)->wait();
  }

  using StartOnGpu = void (NcclCollectives::*)(const at::Tensor&, int64_t, double);

  void start_on_gpu(const char* kind, const at::Tensor& tensor, StartOnGpu start) {
    if (!gpu_) {
      keep_nccl_to_interface_toward(rendezvous_.host);
      const auto from_first = [&](const std::string& text) { return text_of_first(*this, text); };
      gpu_.emplace(rendezvous_.nccl ? rendezvous_.nccl : load_nccl(), tensor.device(),
                   rendezvous_.rank, rendezvous_.size, from_first, limit_seconds());
    }
    NumberedCall call = next_call(kind, tensor);
    const int64_t number = call.number;
    calls_on_gpu_.insert_or_assign(number, PlacedCall{std::move(call), place()});
    on_gpu([&] { ((*gpu_).*start)(tensor, number, limit_seconds()); });
  }

  // The error names the collective that failed, which may be an earlier one.
  template <typename Function>
  void on_gpu(const Function& function) {
    try {
      function();
      note_ends_on_gpu();
    } catch (const GpuCallFailed& failure) {
      note_ends_on_gpu();
      const PlacedCall& failed = calls_on_gpu_.at(failure.call());
      note_end(failed.call, State::kFailed);
      throw DeviceError(fmt::format(
          "rank {} of {}: {}, {}: another process is gone or did not answer ({})", rendezvous_.rank,
          rendezvous_.size, failed.place, failed.call.describe(), failure.what()));
    }
  }

  void note_ends_on_gpu() {
    for (const int64_t number : gpu_->take_completed()) {
      note_end(calls_on_gpu_.at(number).call, State::kDone);
      calls_on_gpu_.erase(number);
    }
  }

  NumberedCall next_call(const char* kind, const at::Tensor& tensor) {
    calls_ += 1;
    NumberedCall call = {
        .number = calls_,
        .what = fmt::format("{} of {}", kind, format_bytes(static_cast<int64_t>(tensor.nbytes())))};
    if (log_) log_->begin(call.number, place(), call.what);
    if (is_long()) in_time(call, [&] { stall_monitor_->enter_collective(call.number); });
    return call;
  }

  void note_end(const NumberedCall& call, State state) {
    if (state == State::kFailed) has_failed_ = true;
    if (log_) log_->end(call.number, state);
  }

  // Whether a process may take a long time in this section.
  bool is_long() const {
    return section_ == Section::kEvaluation || section_ == Section::kCheckpoint;
  }

  // In a long section, checks every second that the processes it waits for make progress.
  void wait_for(c10d::Work& work, const NumberedCall& call) {
    const TraceSpan span(SpanKind::kCommunication, "wait for collective");
    if (!is_long()) {
      work.wait();
      return;
    }
    for (;;) {
      try {
        work.wait(kBetweenLooks);
        return;
      } catch (const std::exception&) {
        if (work.isCompleted()) throw;
      }
      const auto still = stall_monitor_->stalled_rank(call.number, limits_.step);
      if (!still) continue;
      throw DeviceError(fmt::format("rank {} of {}: {}, {}: rank {} has stood still for {}",
                                    rendezvous_.rank, rendezvous_.size, place(), call.describe(),
                                    still->rank, format_duration(still->seconds)));
    }
  }

  double limit_seconds() const {
    if (section_ == Section::kStart) return limits_.start;
    return section_ == Section::kStep ? limits_.step : limits_.other;
  }
  std::chrono::milliseconds limit() const { return milliseconds_of(limit_seconds()); }

  std::string place() const {
    switch (section_) {
      case Section::kStart: return "start";
      case Section::kStep: return fmt::format("step {}", step_);
      case Section::kEvaluation: return fmt::format("evaluation after step {}", step_);
      case Section::kCheckpoint: return fmt::format("checkpoint of step {}", step_);
    }
    throw InternalError("collectives: a section without a name");
  }

  template <typename Function>
  auto in_time(const NumberedCall& call, const Function& function) -> decltype(function()) {
    try {
      return function();
    } catch (const DeviceError&) {
      note_end(call, State::kFailed);
      throw;
    } catch (const std::exception& error) {
      note_end(call, State::kFailed);
      throw DeviceError(fmt::format(
          "rank {} of {}: {}, {}: another process is gone or did not answer within {} ({})",
          rendezvous_.rank, rendezvous_.size, place(), call.describe(),
          format_duration(limit_seconds()), reason_of(error)));
    }
  }

  RendezvousOptions rendezvous_;
  Limits limits_;
  std::optional<launch::CallLog> log_;
  std::optional<StoreServer> server_;
  c10::intrusive_ptr<GlooGroup> group_;
  std::optional<StallMonitor> stall_monitor_;
  bool has_failed_ = false;
  std::map<const void*, Started> started_;  // By the address of the tensor's memory.
  std::optional<NcclCollectives> gpu_;      // Created at the first tensor on a GPU.
  std::map<int64_t, PlacedCall> calls_on_gpu_;
  int64_t calls_ = 0, step_ = 0;
  Section section_ = Section::kStart;
};

}  // namespace

std::unique_ptr<Collectives> init_process_group(const RendezvousOptions& rendezvous) {
  if (rendezvous.size == 1) return single_process_group();
  return std::make_unique<C10dCollectives>(rendezvous);
}

}  // namespace gallop::parallel
