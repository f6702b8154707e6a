#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/layer.h"

namespace gallop::model {

/// Convolution of an image [C, H, W] with a square kernel, or of a sequence [T, C] along T, as
/// torch.nn.Conv2d and Conv1d.
struct ConvConfig {
  int64_t channels = 0;
  int64_t kernel = 3;
  int64_t stride = 1;
  std::string padding = "auto";
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

/// Transposed convolution of an image or a sequence, as torch.nn.ConvTranspose2d and 1d.
struct ConvTransposeConfig {
  int64_t channels = 0;
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
  int64_t output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
};

/// Upsamples an image, as torch.nn.Upsample.
struct UpsampleConfig {
  int64_t scale = 2;
  std::string mode = "nearest";
};

void visit(config::Visitor& visitor, ConvConfig& config);
void visit(config::Visitor& visitor, ConvTransposeConfig& config);
void visit(config::Visitor& visitor, UpsampleConfig& config);

std::unique_ptr<Layer> make_conv(const ConvConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_conv_transpose(const ConvTransposeConfig& config,
                                           LayerContext& context);
std::unique_ptr<Layer> make_upsample(const UpsampleConfig& config, LayerContext& context);

}  // namespace gallop::model
