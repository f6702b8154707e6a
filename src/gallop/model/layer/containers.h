#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/layer.h"

namespace gallop::model {

/// A sequence of layers, as torch.nn.Sequential. An activation after a layer that can fuse it is
/// computed in that layer's pass.
class Sequential final : public Layer {
 public:
  /// Builds the layers of a list at `context.path`. Throws config::OptionError.
  Sequential(const config::ComponentList& list, LayerContext& context);

  at::Tensor forward(const at::Tensor& x) override;
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }
  bool takes_packed_rows() const override;

  size_t size() const { return layers_.size(); }
  Layer& operator[](size_t i) const { return *layers_[i]; }
  /// Runs layer i, with a fused activation after it if any; `next(i)` is the next layer to run.
  at::Tensor run(size_t i, const at::Tensor& x) const;
  size_t next(size_t i) const { return i + (is_fused(i) ? 2 : 1); }

 private:
  bool is_fused(size_t i) const;
  at::Tensor run_all(const at::Tensor& input, size_t end) const;

  std::vector<std::unique_ptr<Layer>> layers_;
  std::shared_ptr<torch::nn::Module> module_;
};

/// Options of a layer that contains a sequence of layers.
struct SequentialConfig {
  explicit SequentialConfig(const config::Catalog& catalog) : layers(catalog) {}
  config::ComponentList layers;
};

/// y = layers(x) + shortcut(x); without a shortcut, + x (He et al. 2016).
struct ResidualConfig {
  explicit ResidualConfig(const config::Catalog& catalog) : layers(catalog), shortcut(catalog) {}
  config::ComponentList layers, shortcut;
};

/// The same layers repeated, each with its own parameters.
struct RepeatConfig {
  explicit RepeatConfig(const config::Catalog& catalog) : layers(catalog) {}
  int64_t times = 1;
  config::ComponentList layers;
};

/// Branches that read the same input. Their outputs are concatenated along the channels, or
/// added.
struct BranchesConfig {
  explicit BranchesConfig(const config::Catalog& catalog) : branches(catalog) {}
  config::ComponentList branches;
};

struct NoOptions {};

void visit(config::Visitor& visitor, SequentialConfig& config);
void visit(config::Visitor& visitor, ResidualConfig& config);
void visit(config::Visitor& visitor, RepeatConfig& config);
void visit(config::Visitor& visitor, BranchesConfig& config);
void visit(config::Visitor& visitor, NoOptions& config);

std::unique_ptr<Layer> make_sequential(const SequentialConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_residual(const ResidualConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_repeat(const RepeatConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_concat(const BranchesConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_add(const BranchesConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_identity(const NoOptions& config, LayerContext& context);

}  // namespace gallop::model
