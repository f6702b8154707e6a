#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/containers.h"

namespace gallop::model {

/// y = x W^T + b over the last dimension of a vector or sequence, as torch.nn.Linear.
struct LinearConfig {
  int64_t features = 0;  ///< Outputs; 0: the classes of the data, or the tokens of its vocabulary.
  bool bias = true;
};

/// Maps each token to a vector, as torch.nn.Embedding.
struct EmbeddingConfig {
  int64_t width = 0;
  double std = 1;
};

/// Adds a learned vector for each position of a sequence.
struct PositionEmbeddingConfig {
  double std = 0.02;
};

struct ToSequenceConfig {
  std::string steps = "pixels";
};

void visit(config::Visitor& visitor, LinearConfig& config);
void visit(config::Visitor& visitor, EmbeddingConfig& config);
void visit(config::Visitor& visitor, PositionEmbeddingConfig& config);
void visit(config::Visitor& visitor, ToSequenceConfig& config);

std::unique_ptr<Layer> make_linear(const LinearConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_embedding(const EmbeddingConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_position_embedding(const PositionEmbeddingConfig& config,
                                               LayerContext& context);
/// Flattens an image or sequence to one vector, as torch.nn.Flatten.
std::unique_ptr<Layer> make_flatten(const NoOptions& config, LayerContext& context);
/// Converts an image [C, H, W] to the sequence of its pixels [H W, C], row by row, or of its
/// columns [W, C H], from left to right.
std::unique_ptr<Layer> make_to_sequence(const ToSequenceConfig& config, LayerContext& context);

}  // namespace gallop::model
