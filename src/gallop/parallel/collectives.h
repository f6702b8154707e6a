#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/config/visitor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

struct Nccl;

/// What a training is at. Errors name it, and each has a time limit for every call.
enum class Section { kStart, kStep, kEvaluation, kCheckpoint };

struct Limits {
  double start = 600;  ///< Seconds: reading data, measuring, compiling the first steps.
  /// A step; also that one may stand still in an evaluation or a checkpoint, which may take longer
  /// as long as it goes ahead.
  double step = 10;
  double other = 600;  ///< An evaluation or a checkpoint.
};

/// Options beside a strategy's.
void visit_limits(config::Visitor& visitor, Limits& limits);

/// What the processes of a training do together. Each calls the same functions in the same order,
/// one thread at a time, with tensors of the CPU or of its GPU. All throw DeviceError, which names
/// this process, the step and the call, where another process is gone or does not answer in time;
/// nothing can be done together after that.
class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts to replace what `tensor` holds, which is dense, by the sum of what it holds in all
  /// processes: the same bits in each. It must not be read or written until wait().
  virtual void all_reduce_async(const at::Tensor& tensor) = 0;
  /// Waits for the sum that all_reduce_async() has started for this tensor.
  virtual void wait(const at::Tensor& tensor) = 0;
  /// Replaces what `tensor` holds by what it holds in process 0.
  virtual void broadcast(const at::Tensor& tensor) = 0;
  /// Of tensors on a GPU only that one waits for what was started, and this process is told here
  /// whether it has failed until now.
  virtual void check() {}

  /// From here on it is at this section, of step `step` counted from 1 or after it. It is at the
  /// start at first. All that was started on a GPU is done then, but from step to step.
  virtual void begin(Section section, int64_t step) = 0;
  /// This process goes ahead with what it does between two calls.
  virtual void note_progress() {}
  virtual void set_limits(const Limits& limits) = 0;
  virtual Limits limits() const = 0;
};

/// Of a single process.
std::unique_ptr<Collectives> single_process_group();

/// How processes find each other.
struct RendezvousOptions {
  int rank = 0, size = 1;
  /// Where the store is that all meet in; see StoreServer.
  std::string host = "127.0.0.1";
  int port = 29500;
  /// Whether another process serves it; else process 0 does.
  bool store_is_there = false;
  /// Tells the processes of one start from those of others that used the same store.
  std::string name = "0";
  double seconds = 60;  ///< For all to come.
  /// Where each process keeps its last calls, to find out what went wrong; empty: nowhere.
  fs::path call_logs{};
  Limits limits{};
  std::shared_ptr<const Nccl> nccl{};  ///< For tensors on GPUs; null: load_nccl().
};

/// Waits for all to come; one alone does not. Throws DeviceError where they do not.
std::unique_ptr<Collectives> init_process_group(const RendezvousOptions& rendezvous);

/// The sums of these numbers over all processes.
std::vector<double> sum_over_all(Collectives& collectives, const std::vector<double>& numbers);

/// What each process has, by rank; of texts the first 255 bytes.
std::vector<uint64_t> gather(Collectives& collectives, uint64_t number);
std::vector<std::string> gather(Collectives& collectives, const std::string& text);
/// The same of any number of bytes, of which each process holds all meanwhile.
std::vector<std::string> gather_bytes(Collectives& collectives, const std::string& bytes);

/// Whether any process says so.
bool any_of(Collectives& collectives, bool one);

/// Replaces what the tensors hold by what those of process 0 hold.
void broadcast_all(Collectives& collectives, const NamedTensors& tensors);

/// The text that process 0 gives, in all.
std::string text_of_first(Collectives& collectives, const std::string& text);

/// Throws UsageError in all processes where one has another text than process 0. `what` says what
/// it tells of: "the recipe".
void require_same(Collectives& collectives, const std::string& what, const std::string& text);

/// What process 0 has thrown and told itself.
class Rank0Error : public Error {
 public:
  using Error::Error;
};

/// Calls the function in process 0 and returns the text that it returns, in all; without
/// collectives just calls it. What it throws is thrown there, and a Rank0Error with the same
/// code and message in the others.
std::string run_on_rank0(Collectives* collectives, const std::function<std::string()>& function);

}  // namespace gallop::parallel
