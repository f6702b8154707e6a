#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/config/visitor.h"
#include "gallop/parallel/value_bytes.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

struct Nccl;

/// The phase of a training. Errors name it, and it determines the timeout of collectives.
enum class Section { kStart, kStep, kEvaluation, kCheckpoint };

struct Limits {
  double start = 600;  ///< Seconds: reading data, measuring, compiling the first steps.
  /// A step; also the time without progress in an evaluation or a checkpoint, which may take longer
  /// as long as they make progress.
  double step = 10;
  double other = 600;  ///< An evaluation or a checkpoint.
};

/// Visits the limits as options that every strategy has.
void visit_limits(config::Visitor& visitor, Limits& limits);

/// Collective operations of the processes of a training. Every process calls the same functions in
/// the same order, one thread at a time, with tensors on the CPU or its GPU. All of them throw
/// DeviceError, which names this process, the step and the call, if another process is gone or does
/// not answer in time; no further collective is possible after that.
class Collectives {
 public:
  Collectives() = default;
  virtual ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts an all-reduce in place: `tensor`, which must be dense, becomes the sum over all
  /// processes, with the same bits in each. It must not be read or written until wait().
  virtual void all_reduce_async(const at::Tensor& tensor) = 0;
  /// Starts an all-to-all: the elements of `input` are cut into parts of send[0], send[1], ... of
  /// them, and part j is sent to rank j. `output` gets receive[i] elements from rank i, in rank
  /// order from its first element on. Both are contiguous, of one data type and share no memory;
  /// neither may be written, nor `output` be read, until wait(output).
  virtual void all_to_all_async(const at::Tensor& output, const at::Tensor& input,
                                c10::IntArrayRef receive, c10::IntArrayRef send) = 0;
  /// Starts an all-gather in place: `tensor`, which must be contiguous, consists of sizes[0],
  /// sizes[1], ... elements, and gets part i from rank i. It must not be read or written until
  /// wait().
  virtual void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes) = 0;
  /// Starts to send a contiguous tensor to a rank that calls recv_async() with one of the same size
  /// and data type. Between two ranks, tensors arrive in the order in which they are sent.
  virtual void send_async(const at::Tensor& tensor, int to) = 0;
  virtual void recv_async(const at::Tensor& tensor, int from) = 0;
  /// Waits for the collective on this tensor that was started.
  virtual void wait(const at::Tensor& tensor) = 0;
  /// Replaces the contents of `tensor` by those of rank 0.
  virtual void broadcast(const at::Tensor& tensor) = 0;
  /// A process group of some ranks of this one, in this order, which all processes create together,
  /// each for the ranks of which it is one; see DeviceMesh. `name` is for messages. This group must
  /// outlive it.
  std::unique_ptr<Collectives> subgroup(const std::vector<int>& ranks, const std::string& name);
  /// The name of a subgroup, with a number if that has been in use before, and thus the same in
  /// all of its processes. Otherwise empty.
  const std::string& name() const { return name_; }
  /// This group, or the subgroup of it that has this name. Throws InternalError for another name.
  Collectives& group(const std::string& name);
  /// Throws if a collective on a GPU has failed so far: wait() only makes the stream wait for it.
  virtual void check() {}

  /// Enters a section, of step `step` counted from 1 or after it. The initial section is the start.
  /// All collectives on a GPU must be complete, except from step to step.
  virtual void begin(Section section, int64_t step) = 0;
  /// Reports progress of this process between two collectives.
  virtual void note_progress() {}
  /// Reports that this process compiles its step, which others do not if their batches have other
  /// shapes. Until its next collective, they wait for it as long as at the start.
  virtual void note_compiling() {}
  virtual void set_limits(const Limits& limits) = 0;
  virtual Limits limits() const = 0;

 protected:
  virtual std::unique_ptr<Collectives> make_subgroup(const std::vector<int>& ranks,
                                                     const std::string& name) = 0;

 private:
  std::string name_;
  Collectives* whole_ = nullptr;                   // The group that a subgroup is a part of.
  std::map<std::string, Collectives*> subgroups_;  // By Collectives::name().
  std::map<std::string, int> made_;                // Subgroups so far, by the name they were given.
};

/// The collectives of a single process, which have no effect.
std::unique_ptr<Collectives> single_process_group();

/// How the processes of a group find each other.
struct RendezvousOptions {
  int rank = 0, size = 1;
  /// Address of the rendezvous store; see StoreServer.
  std::string host = "127.0.0.1";
  int port = 29500;
  /// Whether another process serves the store; otherwise rank 0 does.
  bool store_is_there = false;
  /// Distinguishes the processes of one start from those of others that used the same store.
  std::string name = "0";
  double seconds = 60;  ///< Timeout until all processes have joined.
  /// Folder in which each process records its last collectives, for diagnosis; empty: not recorded.
  fs::path call_logs{};
  Limits limits{};
  std::function<double()> clock = monotonic_seconds;  ///< Measures stalls, in seconds.
  std::shared_ptr<const Nccl> nccl{};                 ///< For tensors on GPUs; null: load_nccl().
};

/// Waits until all processes have joined; a single process does not wait. Throws DeviceError on a
/// timeout.
std::unique_ptr<Collectives> init_process_group(const RendezvousOptions& rendezvous);

/// The elementwise sums of `numbers` over all processes.
std::vector<double> sum_over_all(Collectives& collectives, const std::vector<double>& numbers);

/// The value of each process, by rank. Texts are truncated to 255 bytes.
std::vector<uint64_t> gather(Collectives& collectives, uint64_t number);
std::vector<std::string> gather(Collectives& collectives, const std::string& text);
/// As gather(), for any number of bytes; each process holds the bytes of all in memory.
std::vector<std::string> gather_bytes(Collectives& collectives, const std::string& bytes);

/// Whether `one` is true in any process.
bool any_of(Collectives& collectives, bool one);

/// Replaces the contents of the tensors by those of rank 0.
void broadcast_all(Collectives& collectives, const NamedTensors& tensors);

/// Returns the text of rank 0 in all processes.
std::string text_of_first(Collectives& collectives, const std::string& text);

/// Throws UsageError in all processes if any has another text than rank 0. `what` describes the
/// text in the message, such as "the recipe".
void require_same(Collectives& collectives, const std::string& what, const std::string& text);

/// An error that rank 0 has thrown and reports itself.
class Rank0Error : public Error {
 public:
  using Error::Error;
};

/// Calls the function on rank 0 and broadcasts the bytes that it returns. An Error that it throws
/// is thrown there, and a Rank0Error with the same code and message on the other ranks.
std::string broadcast_from_rank0(Collectives& collectives,
                                 const std::function<std::string()>& function);

/// Calls the function on rank 0 and returns its result on all ranks: nothing, text, a number, an
/// optional one of these, or a list of texts. Without collectives it is just called. Errors as in
/// broadcast_from_rank0().
template <typename F>
std::invoke_result_t<F> run_on_rank0(Collectives* collectives, const F& function) {
  using T = std::invoke_result_t<F>;
  if (collectives == nullptr) return function();
  if constexpr (std::is_void_v<T>) {
    broadcast_from_rank0(*collectives, [&function] {
      function();
      return std::string();
    });
  } else {
    return ValueBytes<T>::read(broadcast_from_rank0(
        *collectives, [&function] { return ValueBytes<T>::write(function()); }));
  }
}

}  // namespace gallop::parallel
