#include "gallop/base/trace.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "gallop/base/error.h"

namespace gallop {

namespace {

// Events of a thread before its buffer grows for the first time.
constexpr size_t kFirstEvents = 1024;

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

// The spans of a thread. It outlives the thread, so that those of threads that have ended are kept.
struct Buffer {
  std::mutex mutex;  // Contended only while a recording starts or ends.
  ThreadTrace trace;
};

// The buffers of all threads that have recorded a span.
struct Buffers {
  std::mutex mutex;
  std::vector<std::shared_ptr<Buffer>> all;

  std::shared_ptr<Buffer> add() {
    auto buffer = std::make_shared<Buffer>();
    buffer->trace.id = gettid();
    buffer->trace.name = name_of_this_thread();
    const std::lock_guard lock(mutex);
    all.push_back(buffer);
    return buffer;
  }

  // Those of threads that have ended are only needed once.
  std::vector<ThreadTrace> take() {
    std::vector<ThreadTrace> traces;
    const std::lock_guard lock(mutex);
    for (const auto& buffer : all) {
      const std::lock_guard buffer_lock(buffer->mutex);
      traces.push_back({.id = buffer->trace.id, .name = buffer->trace.name, .events = {}});
      traces.back().events.swap(buffer->trace.events);
    }
    std::erase_if(all, [](const auto& buffer) { return buffer.use_count() == 1; });
    return traces;
  }
};

// Never destroyed: threads may outlive static objects.
Buffers& buffers() {
  static auto& all = *new Buffers;
  return all;
}

}  // namespace

thread_local const TraceSpan* TraceSpan::current_ = nullptr;

const char* name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kStep: return "step";
    case SpanKind::kPhase: return "phase";
    case SpanKind::kLayer: return "layer";
    case SpanKind::kOperator: return "operator";
    case SpanKind::kDataWait: return "data wait";
    case SpanKind::kData: return "data";
    case SpanKind::kCopy: return "copy";
    case SpanKind::kCommunication: return "communication";
    case SpanKind::kCheckpoint: return "checkpoint";
    case SpanKind::kEvaluation: return "evaluation";
    case SpanKind::kCompilation: return "compilation";
  }
  return "";
}

int64_t monotonic_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TraceRecorder::TraceRecorder() : thread_(gettid()) {
  buffers().take();  // Drops spans that ended after an earlier recording.
  if (is_tracing_flag.exchange(true)) {
    recording_ = false;
    throw InternalError("a trace is being recorded already");
  }
  begin_ns_ = monotonic_nanoseconds();
}

TraceRecorder::~TraceRecorder() { stop(); }

Trace TraceRecorder::stop() {
  if (!std::exchange(recording_, false)) return {};
  is_tracing_flag = false;
  Trace trace{
      .begin_ns = begin_ns_, .end_ns = monotonic_nanoseconds(), .threads = buffers().take()};
  for (ThreadTrace& thread : trace.threads) {
    thread.main = thread.id == thread_;
    // A span may have been measured by begin and end, and recorded later.
    std::erase_if(thread.events,
                  [&](const TraceEvent& event) { return event.begin_ns < trace.begin_ns; });
  }
  std::erase_if(trace.threads,
                [](const ThreadTrace& thread) { return thread.events.empty() && !thread.main; });
  std::sort(trace.threads.begin(), trace.threads.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.main, a.id) < std::pair(!b.main, b.id);
  });
  return trace;
}

void TraceSpan::record() const {
  record_span(kind_, name_, begin_ns_, monotonic_nanoseconds(), number_);
}

void record_span(SpanKind kind, std::string_view name, int64_t begin_ns, int64_t end_ns,
                 int64_t number) {
  if (!is_tracing()) return;
  thread_local const std::shared_ptr<Buffer> buffer = buffers().add();
  const std::lock_guard lock(buffer->mutex);
  auto& events = buffer->trace.events;
  if (events.empty()) events.reserve(kFirstEvents);
  events.push_back({.name = std::string(name),
                    .kind = kind,
                    .number = number,
                    .begin_ns = begin_ns,
                    .end_ns = end_ns});
}

}  // namespace gallop
