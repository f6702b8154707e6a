#pragma once

#include "gallop/compile/passes.h"

// The passes, one source each. passes.cpp has their order.
namespace gallop::compile::passes {

/// Changes in place become new values where the old one is not part of anything that stays.
void functionalize(Graph& graph);

/// A call with the same arguments as an earlier one takes its results.
void cse(Graph& graph);

/// A conversion to a wider format and back, or one that changes nothing, goes.
void merge_casts(Graph& graph);

/// Products of one tensor with several weights, such as those of queries, keys and values, and
/// their gradients become products with the weights side by side.
void merge_matmuls(Graph& graph);

/// The gradient of a large linear layer's weight becomes a call of kernel/linear_wgrad.h.
void linear_wgrads(Graph& graph);

/// Convolutions of few channels in bf16, and their gradients of x, become calls of kernel/conv2d.h.
void convolutions(Graph& graph);

/// Other products of large linear layers become calls of kernel/linear_gemm.h.
void linear_gemms(Graph& graph);

/// Optimizers take bf16 gradients as they come from the products, not converted to fp32 before.
void narrow_gradients(Graph& graph);

/// bf16 copies of parameters that steps compute with stay from step to step, and the optimizer's
/// update writes them; see shadows.h.
void bf16_weights(Graph& graph, PassContext& context);

/// Batch norm of training with a residual and ReLU behind it, and their gradients with the sum of
/// two that meet, become calls of kernel/batch_norm.h.
void batch_norms(Graph& graph);

/// Layer norm with the sum before it and the cast behind it, and its gradient with the sum behind
/// it and the casts around it, become calls of kernel/layer_norm.h.
void layer_norms(Graph& graph);

/// Attention over one tensor of queries, keys and values becomes a call of kernel/attention.h, and
/// so does its gradient.
void attention(Graph& graph);

/// Softmax cross-entropy of classes, as a sum or a mean, with or without label smoothing, becomes a
/// call of kernel/cross_entropy.h, and so does its gradient.
void cross_entropy(Graph& graph);

/// GELU, SiLU and ReLU with their gradients become calls of kernel/activation.h, along with the
/// bias before them and the sums for its gradient.
void activations(Graph& graph);

/// On a GPU that loops can be compiled for, batch norm of training, layer norm, RMS norm and their
/// gradients become sums and pointwise operators, which fuse() makes loops of along with what
/// stands around them.
void norm_loops(Graph& graph, PassContext& context);
/// The same whatever this machine can compile.
void split_norms(Graph& graph);

/// Dead code elimination: removes nodes whose results are unused.
void dce(Graph& graph);

/// Pointwise operators and reductions that use each other's results become one loop that is
/// generated, compiled and cached; see codegen/. Waits for the compiler, so that the same run has
/// the same bits.
void fuse(Graph& graph, PassContext& context);

/// What is computed once more on purpose reads what it is computed of, no copy: see
/// kernel/barrier.h. Behind the passes that would take the second time for the first.
void barriers(Graph& graph);

/// Cheap results that lie there for long while memory is at its peak are computed twice instead;
/// see recompute.h.
void rematerialize(Graph& graph);

/// Nodes run in the order that needs the least memory, as far as moves of single nodes find it, and
/// collectives go on while others compute. No bit changes.
void schedule(Graph& graph);

}  // namespace gallop::compile::passes
