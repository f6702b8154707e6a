// Step 2: an all-reduce from sends. The processes form a ring, and each sends to the next one only.
// In a reduce-scatter, sums of the chunks of a tensor go around the ring and grow until each
// process has one of them complete; in an all-gather, the complete chunks go around. Each process
// sends 2 (N-1)/N times the tensor, however many processes there are: sending it to all others
// would take N-1 times the tensor.
#include <ATen/ops/tensor_split.h>

#include "common.h"

class Ring {
 public:
  explicit Ring(const ProcessGroup& group) : group_(group) {}

  void all_reduce(const at::Tensor& tensor) {
    const Tensors chunks = at::tensor_split(tensor, group_.size());  // Views of it.
    // Step 0 sends the chunk of this rank's number, step 1 the one before it, which has just come.
    for (int step = 0; step < group_.size() - 1; ++step) {
      const at::Tensor sum = chunks[chunk(-step - 1)], part = at::empty_like(sum);
      exchange(chunks[chunk(-step)], part);
      sum.add_(part);
    }
    // The chunk after this rank's number is complete now.
    for (int step = 0; step < group_.size() - 1; ++step) {
      exchange(chunks[chunk(1 - step)], chunks[chunk(-step)]);
    }
  }

  int64_t elements_sent = 0;

 private:
  size_t chunk(int offset) const { return neighbor(offset); }
  int neighbor(int offset) const {
    const int size = group_.size();
    return ((group_.rank() + offset) % size + size) % size;
  }
  void exchange(const at::Tensor& out, const at::Tensor& in) {
    Work sending = group_.send_async(out, neighbor(1));
    group_.recv(in, neighbor(-1));
    sending.wait();
    elements_sent += out.numel();
  }

  const ProcessGroup& group_;
};

int main(int, char** argv) {
  return run_step(argv[0], {2, 3, 4}, [](const ProcessGroup& group) {
    const int64_t elements = 12000;
    const auto of_rank = [&](int rank) {
      return random({elements}, 1 + static_cast<uint64_t>(rank));
    };
    at::Tensor sum = at::zeros({elements}, at::kDouble);
    for (int rank = 0; rank < group.size(); ++rank) sum = sum + of_rank(rank);

    Ring ring(group);
    const at::Tensor by_ring = of_rank(group.rank()), by_library = of_rank(group.rank());
    ring.all_reduce(by_ring);
    group.all_reduce(by_library);
    if (group.rank() == 0) {
      fmt::print("{} processes: each sent {} of {} elements\n", group.size(), ring.elements_sent,
                 elements);
    }

    Comparison comparison;
    comparison.add("ring", by_ring, sum, 1e-12);
    comparison.add("library", by_library, sum, 1e-12);
    // Each chunk is added up once, and copied: all processes have the same bits.
    const at::Tensor of_first = by_ring.clone();
    group.broadcast(of_first);
    comparison.add("ring, in all processes", by_ring, of_first, 0);
    return comparison.finish(group);
  });
}
