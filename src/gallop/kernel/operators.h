#pragma once

namespace c10 {
class OperatorHandle;
}

// The kernels as operators "gallop::NAME" of LibTorch's dispatcher, for graphs that passes
// construct. Each is registered on first use; its header documents it.
namespace gallop::kernel {

c10::OperatorHandle activation_operator();
c10::OperatorHandle activation_backward_operator();
c10::OperatorHandle attention_operator();
c10::OperatorHandle attention_backward_operator();
c10::OperatorHandle batch_norm_operator();
c10::OperatorHandle batch_norm_backward_operator();
c10::OperatorHandle conv2d_operator();
c10::OperatorHandle conv2d_dgrad_operator();
c10::OperatorHandle conv2d_wgrad_operator();
c10::OperatorHandle depthwise_conv2d_dgrad_operator();
c10::OperatorHandle depthwise_conv2d_wgrad_operator();
c10::OperatorHandle cross_entropy_operator();
c10::OperatorHandle cross_entropy_backward_operator();
c10::OperatorHandle global_avg_pool_operator();
c10::OperatorHandle global_avg_pool_backward_operator();
c10::OperatorHandle layer_norm_operator();
c10::OperatorHandle layer_norm_backward_operator();
c10::OperatorHandle linear_operator();
c10::OperatorHandle linear_backward_operator();
c10::OperatorHandle linear_gemm_operator();
c10::OperatorHandle linear_wgrad_operator();

}  // namespace gallop::kernel
