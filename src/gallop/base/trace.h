#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// A trace: what each thread of this process did, and when.
namespace gallop {

/// What the time of a span is spent on.
enum class SpanKind {
  kStep,           ///< A training step, with everything that the training thread does for it.
  kPhase,          ///< Part of a step: "forward", "backward", "optimizer".
  kLayer,          ///< A layer of the model.
  kOperator,       ///< An operator, or a node of a compiled step.
  kDataWait,       ///< Waiting for the next batch.
  kData,           ///< Preparing samples: "read", "decode", "augment".
  kCopy,           ///< Copies between host and device.
  kCommunication,  ///< Exchange with other processes.
  kCheckpoint,     ///< Saving.
  kEvaluation,     ///< Evaluation.
  kCompilation,    ///< Recording and compiling a step.
};

/// "data wait"
const char* name_of(SpanKind kind);

/// A finished span of one thread. Times are monotonic_nanoseconds().
struct TraceEvent {
  std::string name;
  SpanKind kind = SpanKind::kStep;
  int64_t number = -1;  ///< Of the step or the node; -1: none.
  int64_t begin_ns = 0, end_ns = 0;

  int64_t ns() const { return end_ns - begin_ns; }
};

/// The spans of one thread that ended during the recording, in the order of their ends.
struct ThreadTrace {
  int64_t id = 0;     ///< Of the system.
  std::string name;   ///< "loader"
  bool main = false;  ///< The thread that started the recording.
  std::vector<TraceEvent> events;
};

struct Trace {
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<ThreadTrace> threads;  ///< That of the recording first; the others by id.
};

/// Nanoseconds of the clock of monotonic_seconds().
int64_t monotonic_nanoseconds();

/// Records the spans of all threads from its construction to stop(). Throws InternalError if
/// another one is recording.
class TraceRecorder {
 public:
  TraceRecorder();
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  /// Ends the recording and returns what was recorded; empty if it has already ended. A span that
  /// has not ended is not part of it.
  Trace stop();

 private:
  bool recording_ = true;
  int64_t begin_ns_ = 0;
  int64_t thread_ = 0;
};

/// Whether spans are recorded. Takes about a nanosecond.
inline std::atomic<bool> is_tracing_flag{false};
inline bool is_tracing() { return is_tracing_flag.load(std::memory_order_relaxed); }

/// The name of the span of kPhase around the nodes of a compiled graph, with the graph's number;
/// each node is a span of kOperator with the node's index.
inline constexpr std::string_view kGraphSpan = "compiled graph";

/// A span of this thread, from its construction to its destruction, which must be the reverse order
/// of their construction. Where nothing is recorded, only innermost() finds it.
class TraceSpan {
 public:
  /// `name` must outlive the span.
  explicit TraceSpan(SpanKind kind, std::string_view name, int64_t number = -1)
      : outer_(current_), name_(name), kind_(kind), number_(number) {
    current_ = this;
    if (is_tracing()) begin_ns_ = monotonic_nanoseconds();
  }
  ~TraceSpan() {
    current_ = outer_;
    if (begin_ns_ != 0) record();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  SpanKind kind() const { return kind_; }
  std::string_view name() const { return name_; }

  /// The innermost span of this kind that this thread is in; null outside of any.
  static const TraceSpan* innermost(SpanKind kind) {
    const TraceSpan* span = current_;
    while (span != nullptr && span->kind_ != kind) span = span->outer_;
    return span;
  }

 private:
  void record() const;

  static thread_local const TraceSpan* current_;

  const TraceSpan* outer_;
  std::string_view name_;
  SpanKind kind_;
  int64_t number_;
  int64_t begin_ns_ = 0;  // 0: not recorded.
};

/// Records a span of this thread that has ended, if spans are recorded.
void record_span(SpanKind kind, std::string_view name, int64_t begin_ns, int64_t end_ns,
                 int64_t number = -1);

}  // namespace gallop
