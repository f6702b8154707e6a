// Step 1: send and receive. A network of two layers lies in two processes, one layer in each. What
// they exchange are tensors, and nothing else.
#include "common.h"

int main(int, char** argv) {
  return run_step(argv[0], {2}, [](const ProcessGroup& group) {
    const at::Tensor x = random({4, 8}, 1), first = random({8, 8}, 2), second = random({8, 8}, 3);

    // A message has neither a shape nor a type: the receiver brings a tensor that has the same.
    const at::Tensor y = at::empty({4, 8}, at::kDouble);
    if (group.rank() == 0) {
      group.send(at::tanh(at::matmul(x, first)), 1);
      group.recv(y, 1);
    } else {
      const at::Tensor hidden = at::empty({4, 8}, at::kDouble);
      group.recv(hidden, 0);
      y.copy_(at::matmul(hidden, second));
      group.send(y, 0);
    }

    // send() returns when the other process has begun to receive. If both called it now, each would
    // wait for the other forever. So both start to send, receive, and wait for the end of both.
    const int other = 1 - group.rank();
    const at::Tensor own = random({3}, 10 + static_cast<uint64_t>(group.rank()));
    const at::Tensor received = at::empty_like(own);
    Work sending = group.send_async(own, other);
    group.recv(received, other);
    sending.wait();

    Comparison comparison;
    comparison.add("output", y, at::matmul(at::tanh(at::matmul(x, first)), second), 0);
    comparison.add("exchanged", received, random({3}, 10 + static_cast<uint64_t>(other)), 0);
    return comparison.finish(group);
  });
}
