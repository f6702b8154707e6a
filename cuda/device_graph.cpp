// libgallop_cuda.so: the part of the step compiler that needs LibTorch's CUDA library. The program
// loads it if there is a GPU.

#include "gallop/compile/device_graph.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace gallop::compile {

namespace {

/// LibTorch's CUDA graph, with its own memory pool; each replay advances the default generator.
class CudaGraph : public DeviceGraph {
 public:
  explicit CudaGraph(c10::DeviceIndex device) : device_(device) {}

  void capture(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard on(device_);
    // The default stream cannot be captured. Its pending work comes first.
    const auto outside = c10::cuda::getCurrentCUDAStream(device_);
    const auto inside = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_);
    wait(inside, outside);
    {
      const c10::cuda::CUDAStreamGuard guard(inside);
      graph_.register_generator_state(at::globalContext().defaultGenerator({c10::kCUDA, device_}));
      // Other threads may copy and allocate during the capture.
      graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      try {
        work();
      } catch (...) {
        end_quietly();
        throw;
      }
      graph_.capture_end();
    }
    wait(outside, inside);
  }

  void replay() override {
    const c10::cuda::CUDAGuard on(device_);
    graph_.replay();
  }

 private:
  static void wait(const c10::Stream& waits, const c10::Stream& first) {
    c10::Event event(c10::kCUDA);
    event.record(first);
    event.block(waits);
  }

  // The original error is more useful than one of this call.
  void end_quietly() {
    try {
      graph_.capture_end();
    } catch (const c10::Error&) {
    }
  }

  c10::DeviceIndex device_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

}  // namespace gallop::compile

extern "C" __attribute__((visibility("default"))) gallop::compile::DeviceGraph*
gallop_make_cuda_graph(int device) {
  return new gallop::compile::CudaGraph(static_cast<c10::DeviceIndex>(device));
}
