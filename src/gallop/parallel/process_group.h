#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop {

namespace parallel {
class Collectives;
}

/// A collective that has been started. Its tensor must not be written, nor read if the collective
/// fills it, until wait().
class [[nodiscard]] Work {
 public:
  Work(Work&&) = default;
  Work& operator=(Work&&) = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() = default;

  /// Waits for the collective; does nothing if that has been done.
  void wait();

 private:
  friend class ProcessGroup;
  Work(std::shared_ptr<parallel::Collectives> collectives, at::Tensor waited);

  std::shared_ptr<parallel::Collectives> collectives_;
  at::Tensor waited_;
};

/// Processes that exchange tensors, on CPUs by Gloo and on GPUs by NCCL, with the operations of
/// torch.distributed. All processes of the group make the same calls in the same order, from one
/// thread at a time, with tensors of the same sizes and types. Autograd does not record the calls.
///
/// Tensors have to be contiguous, and ranks are those in this group. Wrong arguments are a
/// UsageError. If another process has ended or does not answer in time, a call throws a DeviceError
/// that names it; no further calls are possible then.
class ProcessGroup {
 public:
  explicit ProcessGroup(std::shared_ptr<parallel::Collectives> collectives);

  int rank() const;
  int size() const;

  /// The tensor becomes the sum over all processes, with the same bits in each.
  void all_reduce(const at::Tensor& tensor) const;
  /// `input` consists of one part for each process, in rank order, of the size of `output`, which
  /// becomes the sum over all processes of this one's part, added up in rank order.
  void reduce_scatter(const at::Tensor& output, const at::Tensor& input) const;
  /// `output` becomes the inputs of all processes, in rank order, whose sizes are equal.
  void all_gather(const at::Tensor& output, const at::Tensor& input) const;
  /// Sends part j of `input` to rank j, and receives part i of `output` from rank i. Parts are
  /// slices along the first dimension with these sizes, by default of equal size.
  void all_to_all(const at::Tensor& output, const at::Tensor& input,
                  const std::vector<int64_t>& output_sizes = {},
                  const std::vector<int64_t>& input_sizes = {}) const;
  /// The tensor becomes that of rank `src`.
  void broadcast(const at::Tensor& tensor, int src = 0) const;
  /// Sends to a rank that calls recv() with a tensor of the same size and type, and returns when
  /// that has begun to receive. Between two ranks, tensors arrive in the order in which they are
  /// sent.
  void send(const at::Tensor& tensor, int dst) const;
  void recv(const at::Tensor& tensor, int src) const;
  /// Returns when all processes have called it.
  void barrier() const;

  /// The same, only started. A tensor that is sent is copied before, and may be overwritten at
  /// once.
  Work all_reduce_async(const at::Tensor& tensor) const;
  Work send_async(const at::Tensor& tensor, int dst) const;
  Work recv_async(const at::Tensor& tensor, int src) const;

  /// A group of some ranks, in this order, one of which is this process. All processes call it
  /// together, each with the ranks of its own group, so that one call divides all of them. Errors
  /// mention the name, such as "tp".
  ProcessGroup subgroup(const std::vector<int>& ranks, const std::string& name) const;

 private:
  void require_rank(const char* call, int rank) const;
  Work start_send(const at::Tensor& tensor, int dst, bool copies) const;

  std::shared_ptr<parallel::Collectives> collectives_;
};

/// Joins the processes that `gallop launch`, torchrun, Open MPI, Slurm's srun or PMI have started,
/// by their environment variables: binds this one to its part of the host's cores, unless the
/// launcher has done so, and waits for the others. A process that none of them has started is a
/// group of its own. `timeout`: seconds that a call waits for other processes. Throws UsageError if
/// the variables are contradictory, DeviceError if others do not join.
ProcessGroup init_process_group(double timeout = 600);

}  // namespace gallop
