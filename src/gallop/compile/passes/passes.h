#pragma once

#include "gallop/compile/passes.h"

// The passes, one source each. passes.cpp has their order.
namespace gallop::compile::passes {

/// Replaces in-place operators by functional ones, if the old value is not part of persistent
/// memory.
void functionalize(Graph& graph);

/// Common subexpression elimination: a call with the same arguments as an earlier one reuses its
/// results.
void cse(Graph& graph);

/// Constant folding: what depends on sizes alone, such as masks and rotary angles, is computed here
/// and kept in memory.
void fold_constants(Graph& graph);

/// Assembles the gradient of a tensor from those of its slices by one `cat` or `stack`, instead of
/// adding up tensors that are 0 outside of their slice.
void slice_gradients(Graph& graph);

/// Lets `stack` and `cat` join tensors in the order of memory to which their result is copied.
void ordered_joins(Graph& graph);

/// Removes copies of tensors to the same layout whose original does not change while they are read.
void copies(Graph& graph);

/// Computes results of pointwise operators again where a later loop reads them, mostly in the
/// backward pass, instead of passing them through memory, if that loop then reads no more bytes.
/// On a GPU, whose loops are bound by memory; bits do not change.
void recompute(Graph& graph);

/// Sets the flag of causal attention in place of a constant mask that hides the keys behind each
/// query, and removes constant masks that hide nothing.
void attention_masks(Graph& graph);

/// Removes casts to a wider type and back, and casts without effect.
void merge_casts(Graph& graph);

/// Merges GEMMs of one tensor with several weights, such as those of queries, keys and values, and
/// their gradients into GEMMs with the concatenated weights.
void merge_matmuls(Graph& graph);

/// Replaces small linear layers with their bias and ReLU, and their gradients, by kernel/linear.h.
void linear_layers(Graph& graph);

/// Replaces the weight gradients of large linear layers by kernel/linear_wgrad.h.
void linear_wgrads(Graph& graph);

/// Replaces bf16 convolutions with few channels and their input gradients by kernel/conv2d.h, and
/// weight gradients by kernel/conv2d_wgrad.h, which return them in fp32.
void convolutions(Graph& graph);

/// Replaces other GEMMs of large linear layers by kernel/linear_gemm.h.
void linear_gemms(Graph& graph);

/// Passes bf16 gradients to optimizers as the GEMMs produce them, without a cast to fp32.
void narrow_gradients(Graph& graph);

/// Keeps bf16 copies of parameters from step to step, written by the optimizer's update; see
/// bf16_weight_cache.h.
void bf16_weights(Graph& graph, PassContext& context);

/// Replaces global average pooling of channels_last images, and its gradient, which becomes
/// channels_last, by kernel/global_avg_pool.h.
void pooling(Graph& graph);

/// Replaces batch norm in training mode, with a subsequent residual and ReLU, and their gradients,
/// with the addition of two incoming ones, by kernel/batch_norm.h.
void batch_norms(Graph& graph);

/// Replaces layer norm, with the addition before and the cast after it, and its gradient, with the
/// addition after and the casts around it, by kernel/layer_norm.h.
void layer_norms(Graph& graph);

/// Replaces attention on a packed tensor of queries, keys and values, and its gradient, by
/// kernel/attention.h.
void attention(Graph& graph);

/// Replaces softmax cross-entropy of classes, as a sum or a mean, with or without label smoothing,
/// and its gradient by kernel/cross_entropy.h.
void cross_entropy(Graph& graph);

/// Replaces GELU, SiLU and ReLU with the preceding bias, and their gradients with the bias
/// gradient, by kernel/activation.h.
void activations(Graph& graph);

/// On a GPU for which loops can be compiled, decomposes batch norm in training mode, layer norm,
/// RMS norm and their gradients into reductions and pointwise operators, which fuse() combines with
/// the surrounding ones.
void norm_loops(Graph& graph, PassContext& context);
/// As norm_loops(), whatever this machine can compile.
void split_norms(Graph& graph);

/// Dead code elimination: removes nodes whose results are unused.
void dce(Graph& graph);

/// Fuses pointwise operators and reductions that use each other's results into loops that are
/// generated, compiled and cached; see codegen/. Waits for the compiler, so that the same run has
/// the same bits.
void fuse(Graph& graph, PassContext& context);

/// Makes blocks that are recomputed on purpose read the saved tensors instead of copies: see
/// kernel/barrier.h. Must run after the passes that would merge the recomputation with the
/// original.
void barriers(Graph& graph);

/// Recomputes cheap results that are live for long while memory is at its peak; see
/// rematerialize.h.
void rematerialize(Graph& graph);

/// Orders nodes for the smallest peak memory, by moves of single nodes, and overlaps collectives
/// with computation. Changes no bit.
void schedule(Graph& graph);

}  // namespace gallop::compile::passes
