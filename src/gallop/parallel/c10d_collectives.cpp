#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "gallop/base/blocked_signals.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/base/thread_pool.h"
#include "gallop/base/trace.h"
#include "gallop/launch/call_log.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/gloo_group.h"
#include "gallop/parallel/libtorch_system_calls.h"
#include "gallop/parallel/nccl_collectives.h"
#include "gallop/parallel/process_moment.h"
#include "gallop/parallel/store.h"

namespace gallop::parallel {

namespace {

// A collective in which all processes take part.
struct NumberedCall {
  int64_t number = 0;  // From 1; the same in all processes.
  std::string what;
  int64_t in_log = 0;  // The number among the calls of all groups.

  std::string describe() const { return fmt::format("call {}, {}", number, what); }
};

using State = launch::Call::State;

// Looks at the progress of others within the time in which they have to make some.
constexpr double kLooks = 10, kMostSecondsBetweenLooks = 1;

class C10dCollectives final : public Collectives {
 public:
  // A subgroup has the moment of the group whose ranks it has, and a name.
  explicit C10dCollectives(const RendezvousOptions& rendezvous,
                           std::shared_ptr<ProcessMoment> moment = nullptr,
                           std::string subgroup = "")
      : rendezvous_(rendezvous), subgroup_(std::move(subgroup)), moment_(std::move(moment)) {
    if (!moment_) {
      moment_ = std::make_shared<ProcessMoment>();
      moment_->rank = rendezvous.rank;
      moment_->size = rendezvous.size;
      moment_->limits = rendezvous.limits;
      if (!rendezvous.call_logs.empty()) {
        moment_->log.emplace(rendezvous.call_logs, rendezvous.rank);
      }
    }
    try {
      connect();
    } catch (const std::exception& error) {
      if (dynamic_cast<const Error*>(&error) != nullptr) throw;
      throw DeviceError(
          fmt::format("rank {} of {} could not join all other ranks at {} port {} within {}: {}",
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
    const bool begins_steps = section == Section::kStep && moment_->section != section;
    moment_->section = section;
    moment_->step = step;
    moment_->stall_monitor->begin();
    // What was compiled before does not delay the first timeout.
    if (begins_steps) ask_store([&] { moment_->stall_monitor->sees_long_work(); });
  }
  void note_progress() override {
    if (is_long()) moment_->stall_monitor->note_progress();
  }
  void note_compiling() override {
    ask_store([&] { moment_->stall_monitor->begin_long_work(); });
  }
  void set_limits(const Limits& limits) override { moment_->limits = limits; }
  Limits limits() const override { return moment_->limits; }

  void all_reduce_async(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) {
      return start_on_gpu("sum", tensor, [&](NcclCollectives& gpu, int64_t call, double seconds) {
        gpu.all_reduce_async(tensor, call, seconds);
      });
    }
    start("sum", "all-reduce", tensor, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      c10d::AllreduceOptions options;
      options.timeout = longest_limit();
      return Works{group_->allreduce(tensors, options)};
    });
  }

  void all_to_all_async(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef receive,
                        c10::IntArrayRef send) override {
    if (!output.is_cpu()) {
      return start_on_gpu("all-to-all", output,
                          [&](NcclCollectives& gpu, int64_t call, double seconds) {
                            gpu.all_to_all_async(output, input, receive, send, call, seconds);
                          });
    }
    start("all-to-all", "all-to-all", output, [&] {
      at::Tensor to = output.reshape({-1}).narrow(0, 0, sum_of(receive));
      at::Tensor from = input.reshape({-1}).narrow(0, 0, sum_of(send));
      std::vector<int64_t> receives = receive.vec(), sends = send.vec();
      c10d::AllToAllOptions options;
      options.timeout = longest_limit();
      return Works{group_->alltoall_base(to, from, receives, sends, options)};
    });
  }

  // By broadcasts, which need no copies; Gloo's all-gather would take parts of equal size alone.
  void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes) override {
    if (!tensor.is_cpu()) {
      return start_on_gpu("all-gather", tensor,
                          [&](NcclCollectives& gpu, int64_t call, double seconds) {
                            gpu.all_gather_async(tensor, sizes, call, seconds);
                          });
    }
    start("all-gather", "all-gather", tensor, [&] {
      Works works;
      int64_t begin = 0;
      for (int root = 0; root < size(); ++root) {
        const int64_t part = sizes[static_cast<size_t>(root)];
        if (part == 0) continue;
        std::vector<at::Tensor> tensors = {tensor.reshape({-1}).narrow(0, begin, part)};
        begin += part;
        c10d::BroadcastOptions options;
        options.rootRank = root;
        options.timeout = longest_limit();
        works.push_back(group_->broadcast(tensors, options));
      }
      return works;
    });
  }

  void send_async(const at::Tensor& tensor, int to) override {
    if (!tensor.is_cpu()) {
      return start_on_gpu("send", tensor, [&](NcclCollectives& gpu, int64_t call, double seconds) {
        gpu.send_async(tensor, to, call, seconds);
      });
    }
    start("send", nullptr, tensor, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      return Works{group_->send(tensors, to, /*tag=*/0)};
    });
  }

  void recv_async(const at::Tensor& tensor, int from) override {
    if (!tensor.is_cpu()) {
      return start_on_gpu("recv", tensor, [&](NcclCollectives& gpu, int64_t call, double seconds) {
        gpu.recv_async(tensor, from, call, seconds);
      });
    }
    start("recv", nullptr, tensor, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      return Works{group_->recv(tensors, from, /*tag=*/0)};
    });
  }

  void wait(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) {
      on_gpu([&] { gpu_->wait(tensor); });
      return;
    }
    const auto found = started_.find(key_of(tensor));
    if (found == started_.end())
      throw InternalError("collectives: no collective on this tensor is in flight");
    const Started started = std::move(found->second);
    started_.erase(found);
    in_time(started.call, [&] {
      for (const auto& work : started.works) wait_for(*work, started);
    });
    note_end(started.call, State::kDone);
  }

  void broadcast(const at::Tensor& tensor) override {
    if (!tensor.is_cpu()) {
      start_on_gpu("broadcast", tensor, [&](NcclCollectives& gpu, int64_t call, double seconds) {
        gpu.broadcast_async(tensor, call, seconds);
      });
      on_gpu([&] { gpu_->wait(tensor); });
      return;
    }
    start("broadcast", nullptr, tensor, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      c10d::BroadcastOptions options;
      options.timeout = longest_limit();
      return Works{group_->broadcast(tensors, options)};
    });
    wait(tensor);
  }

  void check() override {
    if (gpu_) on_gpu([&] { gpu_->check(); });
  }

 protected:
  std::unique_ptr<Collectives> make_subgroup(const std::vector<int>& ranks,
                                             const std::string& name) override {
    const auto own = std::find(ranks.begin(), ranks.end(), rank());
    if (own == ranks.end()) throw InternalError("collectives: a subgroup without this rank");
    subgroups_ += 1;
    if (ranks.size() == 1) return single_process_group();
    RendezvousOptions rendezvous = rendezvous_;
    rendezvous.rank = static_cast<int>(own - ranks.begin());
    rendezvous.size = static_cast<int>(ranks.size());
    rendezvous.store_is_there = true;
    rendezvous.name =
        fmt::format("{}/{}.{}.{}", rendezvous_.name, subgroups_, name, fmt::join(ranks, "-"));
    return std::make_unique<C10dCollectives>(rendezvous, moment_, name);
  }

 private:
  struct PlacedCall {
    NumberedCall call;
    std::string place;
  };
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;
  struct Started {
    NumberedCall call;
    Works works;
    bool is_transfer = false;  // A send or a receive.
  };

  static int64_t sum_of(c10::IntArrayRef sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  }

  // `span`: the name in traces; null for none.
  template <typename Function>
  void start(const char* kind, const char* span, const at::Tensor& tensor,
             const Function& function) {
    NumberedCall call = next_call(kind, tensor);
    const int64_t begin_ns = span != nullptr && is_tracing() ? monotonic_nanoseconds() : 0;
    Works works = in_time(call, function);
    if (begin_ns != 0) {
      for (const auto& work : works) record_when_done(*work, span, begin_ns);
    }
    const bool is_transfer = std::string_view(kind) == "send" || std::string_view(kind) == "recv";
    started_.insert_or_assign(key_of(tensor),
                              Started{std::move(call), std::move(works), is_transfer});
  }

  void connect() {
    FLAGS_caffe2_log_level = c10::GLOG_ERROR;  // Errors are thrown instead of logged.
    if (!rendezvous_.store_is_there && rendezvous_.rank == 0) {
      server_.emplace(rendezvous_.host, rendezvous_.port);
    }
    interpose_system_calls();
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(rendezvous_.port);
    options.waitWorkers = false;
    options.timeout = milliseconds_of(rendezvous_.seconds);
    auto store = c10::make_intrusive<c10d::PrefixStore>(
        "gallop/" + rendezvous_.name,
        c10::make_intrusive<c10d::TCPStore>(rendezvous_.host, options));
    if (subgroup_.empty()) {
      moment_->stall_monitor.emplace(store, rendezvous_.rank, rendezvous_.size, rendezvous_.clock);
    }
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

  template <typename Function>
  void start_on_gpu(const char* kind, const at::Tensor& tensor, const Function& start) {
    if (!gpu_) {
      keep_nccl_to_interface_toward(rendezvous_.host);
      const auto from_first = [&](const std::string& text) { return text_of_first(*this, text); };
      gpu_.emplace(rendezvous_.nccl ? rendezvous_.nccl : load_nccl(), tensor.device(),
                   rendezvous_.rank, rendezvous_.size, from_first, limit_seconds());
    }
    NumberedCall call = next_call(kind, tensor);
    const int64_t number = call.number;
    calls_on_gpu_.insert_or_assign(number, PlacedCall{std::move(call), place()});
    on_gpu([&] { start(*gpu_, number, limit_seconds()); });
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
          "rank {} of {}: {}, {}: another process is gone or did not answer ({})", moment_->rank,
          moment_->size, failed.place, failed.call.describe(), failure.what()));
    }
  }

  void note_ends_on_gpu() {
    for (const int64_t number : gpu_->take_completed()) {
      note_end(calls_on_gpu_.at(number).call, State::kDone);
      calls_on_gpu_.erase(number);
    }
  }

  NumberedCall next_call(const char* kind, const at::Tensor& tensor) {
    ask_store([&] { moment_->stall_monitor->end_long_work(); });
    calls_ += 1;
    moment_->calls += 1;
    NumberedCall call = {
        .number = calls_,
        .what = fmt::format("{}{}{} of {}", subgroup_, subgroup_.empty() ? "" : ": ", kind,
                            format_bytes(static_cast<int64_t>(tensor.nbytes()))),
        .in_log = moment_->calls};
    if (moment_->log) moment_->log->begin(call.in_log, place(), call.what);
    if (is_long()) in_time(call, [&] { moment_->stall_monitor->enter_collective(call.number); });
    return call;
  }

  void note_end(const NumberedCall& call, State state) {
    if (state == State::kFailed) has_failed_ = true;
    if (moment_->log) moment_->log->end(call.in_log, state);
  }

  // Whether a process may take a long time in this section. The group of all processes observes
  // their progress.
  bool is_long() const {
    return subgroup_.empty() &&
           (moment_->section == Section::kEvaluation || moment_->section == Section::kCheckpoint);
  }

  void wait_for(c10d::Work& work, const Started& started) {
    const TraceSpan span(SpanKind::kCommunication, "wait for collective");
    if (started.is_transfer) {
      wait_for_peer(work);
    } else if (moment_->section == Section::kStep) {
      wait_in_step(work);
    } else if (is_long()) {
      wait_for_progress(work, started.call);
    } else {
      work.wait();
    }
  }

  // Whether it has ended within this time. Throws its error.
  static bool has_ended(c10d::Work& work, std::chrono::milliseconds time) {
    try {
      work.wait(time);
      return true;
    } catch (const std::exception&) {
      if (!work.isCompleted()) return false;
      if (work.isSuccess()) return true;  // It ended after the wait.
      throw;
    }
  }

  // Sends and receives have no thread of their own, and a timeout of their wait ends the
  // connection: it must be as long as the peer may compile.
  void wait_for_peer(c10d::Work& work) {
    if (moment_->section != Section::kStep) {
      work.wait(limit());
      return;
    }
    if (!waiter_) waiter_.emplace(1, "wait for peer");
    const auto wait = std::make_shared<std::packaged_task<void()>>(
        [&work, most = longest_limit()] { work.wait(most); });
    std::future<void> end = wait->get_future();
    waiter_->submit([wait] { (*wait)(); });
    const auto has_ended = [&end](std::chrono::milliseconds time) {
      return end.wait_for(time) == std::future_status::ready;
    };
    try {
      while (!has_ended(limit())) {
        if (!moment_->stall_monitor->sees_long_work()) throw std::runtime_error("timed out");
      }
    } catch (...) {
      work.abort();
      end.wait();
      throw;
    }
    end.get();
  }

  void wait_in_step(c10d::Work& work) {
    do {
      if (has_ended(work, limit())) return;
    } while (moment_->stall_monitor->sees_long_work());
    throw std::runtime_error("timed out");
  }

  // Checks again and again that the processes it waits for make progress.
  void wait_for_progress(c10d::Work& work, const NumberedCall& call) {
    const auto between_looks =
        milliseconds_of(std::min(kMostSecondsBetweenLooks, moment_->limits.step / kLooks));
    while (!has_ended(work, between_looks)) {
      const auto still = moment_->stall_monitor->stalled_rank(call.number, moment_->limits.step);
      if (!still) continue;
      throw DeviceError(fmt::format("rank {} of {}: {}, {}: rank {} has made no progress for {}",
                                    moment_->rank, moment_->size, place(), call.describe(),
                                    still->rank, format_duration(still->seconds)));
    }
  }

  template <typename Function>
  void ask_store(const Function& function) const {
    try {
      function();
    } catch (const std::exception& error) {
      throw DeviceError(fmt::format("rank {} of {}: {}: the rendezvous store did not answer ({})",
                                    moment_->rank, moment_->size, place(), reason_of(error)));
    }
  }

  double limit_seconds() const { return moment_->limit_seconds(); }
  std::chrono::milliseconds limit() const { return milliseconds_of(limit_seconds()); }
  std::chrono::milliseconds longest_limit() const {
    return milliseconds_of(moment_->longest_limit_seconds());
  }
  std::string place() const { return moment_->place(); }

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
          moment_->rank, moment_->size, place(), call.describe(), format_duration(limit_seconds()),
          reason_of(error)));
    }
  }

  RendezvousOptions rendezvous_;
  std::string subgroup_;  // Empty for all processes of a training.
  std::shared_ptr<ProcessMoment> moment_;
  std::optional<StoreServer> server_;
  c10::intrusive_ptr<GlooGroup> group_;
  bool has_failed_ = false;
  std::map<const void*, Started> started_;  // By key_of().
  std::optional<ThreadPool> waiter_;        // One thread; see wait_for_peer().
  std::optional<NcclCollectives> gpu_;      // Created at the first tensor on a GPU.
  std::map<int64_t, PlacedCall> calls_on_gpu_;
  int64_t calls_ = 0;
  int64_t subgroups_ = 0;  // So far, so that each has keys of its own in the store.
};

}  // namespace

std::unique_ptr<Collectives> init_process_group(const RendezvousOptions& rendezvous) {
  if (rendezvous.size == 1) return single_process_group();
  return std::make_unique<C10dCollectives>(rendezvous);
}

}  // namespace gallop::parallel
