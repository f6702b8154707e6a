#include "gallop/model/layer/activation.h"
#include "gallop/model/layer/attention_layer.h"
#include "gallop/model/layer/containers.h"
#include "gallop/model/layer/convolution.h"
#include "gallop/model/layer/dense.h"
#include "gallop/model/layer/normalization.h"
#include "gallop/model/layer/pooling.h"
#include "gallop/model/layer/recurrent.h"

namespace gallop::model {

LayerRegistry built_in_layers() {
  LayerRegistry layers("layer");
  layers.add("linear", "y = x W^T + b over the last dimension", make_linear)
      .add("conv", "convolution of an image, or of a sequence along its length", make_conv)
      .add("conv-transpose", "transposed convolution", make_conv_transpose)
      .add("upsample", "upsample an image by interpolation", make_upsample)
      .add("embedding", "a learned vector for each token", make_embedding)
      .add("position-embedding", "adds a learned vector for each position", make_position_embedding)
      .add("attention", "multi-head self-attention", make_attention)
      .add("lstm", "long short-term memory", make_lstm)
      .add("gru", "gated recurrent units", make_gru)
      .add("batch-norm", "batch normalization", make_batch_norm)
      .add("layer-norm", "layer normalization", make_layer_norm)
      .add("rms-norm", "root mean square normalization", make_rms_norm)
      .add("group-norm", "group normalization", make_group_norm)
      .add("relu", "max(x, 0)", make_relu)
      .add("gelu", "Gaussian error linear unit", make_gelu)
      .add("silu", "x sigmoid(x), also called swish", make_silu)
      .add("tanh", "hyperbolic tangent", make_tanh)
      .add("sigmoid", "1 / (1 + exp(-x))", make_sigmoid)
      .add("leaky-relu", "relu with a slope below 0", make_leaky_relu)
      .add("elu", "exponential linear unit", make_elu)
      .add("hardswish", "x relu6(x + 3) / 6", make_hardswish)
      .add("mish", "x tanh(softplus(x))", make_mish)
      .add("softplus", "log(1 + exp(x))", make_softplus)
      .add("max-pool", "maxima of windows", make_max_pool)
      .add("avg-pool", "means of windows", make_avg_pool)
      .add("global-avg-pool", "mean over an image or a sequence", make_global_avg_pool)
      .add("dropout", "set elements to 0 at random in training", make_dropout)
      .add("flatten", "flatten an image or a sequence to one vector", make_flatten)
      .add("to-sequence", "turn an image into a sequence of its pixels or columns",
           make_to_sequence)
      .add("sequential", "layers one after the other", make_sequential)
      .add("residual", "layers(x) + x", make_residual)
      .add("repeat", "the same layers several times, each time with separate parameters",
           make_repeat)
      .add("concat", "branches, concatenated along the channels", make_concat)
      .add("add", "branches, added", make_add)
      .add("identity", "its input", make_identity);
  return layers;
}

}  // namespace gallop::model
