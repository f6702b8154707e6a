// Shapes: B batch, T tokens, C width.
#include "gallop/model/gpt.h"

#include <cmath>

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/stochastic_depth.h"
#include "gallop/model/functional/sum_before_norm.h"
#include "gallop/model/network.h"
#include "gallop/model/transformer_layer.h"

namespace gallop::model {

namespace {

constexpr double kStd = 0.02;

// Layers that write to the residual stream start smaller, as their outputs add up over depth.
InitScheme residual_init(const GptConfig& config) {
  if (config.linear_init != "gpt-2") return parse_init(config.linear_init);
  return {.kind = InitScheme::Kind::kNormal,
          .std = kStd / std::sqrt(2.0 * static_cast<double>(config.layers))};
}

InitScheme inner_init(const GptConfig& config) {
  if (config.linear_init != "gpt-2") return parse_init(config.linear_init);
  return {.kind = InitScheme::Kind::kNormal, .std = kStd};
}

Norm::Options norm_options(const GptConfig& config) {
  return {.width = config.width, .bias = config.bias, .rms = config.norm == "rms"};
}

FeedForward::Activation activation_of(const GptConfig& config) {
  if (config.activation == "swiglu") return FeedForward::Activation::kSwiglu;
  return config.activation == "gelu" ? FeedForward::Activation::kGelu
                                     : FeedForward::Activation::kGeluTanh;
}

// A gated layer has three matrices instead of two, so 2/3 of the width gives the same parameter
// count, as in Llama (Touvron et al. 2023), rounded to a multiple of 64.
int64_t inner_width(const GptConfig& config) {
  if (config.activation != "swiglu") return 4 * config.width;
  return (config.width * 8 / 3 + 63) / 64 * 64;
}

TransformerLayer::Options layer_options(const GptConfig& config, bool causal,
                                        double stochastic_depth) {
  return {.norm = norm_options(config),
          .attention = {.width = config.width,
                        .heads = config.heads,
                        .causal = causal,
                        .bias = config.bias,
                        .rotary = config.positions == "rotary",
                        .dropout = config.dropout,
                        .input_name = "c_attn",
                        .output_name = "c_proj",
                        .input_init = inner_init(config),
                        .output_init = residual_init(config)},
          .feed_forward = {.width = config.width,
                           .inner = inner_width(config),
                           .bias = config.bias,
                           .activation = activation_of(config),
                           .dropout = config.dropout,
                           .expand_name = "c_fc",
                           .contract_name = "c_proj",
                           .expand_init = inner_init(config),
                           .contract_init = residual_init(config)},
          .norm1_name = "ln_1",
          .norm2_name = "ln_2",
          .stochastic_depth = stochastic_depth,
          .experts = config.experts};
}

class Gpt final : public Network {
 public:
  Gpt(const GptConfig& config, const Task& task, InitialWeights weights)
      : dropout_(config.dropout),
        context_(task.context),
        classes_(task.classes),
        padded_(task.padded),
        has_auxiliary_loss_(has_loss(config.experts)) {
    Initializer init(weights);
    const auto body = register_module("transformer", std::make_shared<Group>());
    tokens_ = body->register_module(
        "wte",
        std::make_shared<Embedding>(init, Embedding::Options{task.tokens(), config.width, kStd}));
    if (config.positions == "learned") {
      positions_ = body->register_module(
          "wpe",
          std::make_shared<Embedding>(init, Embedding::Options{task.context, config.width, kStd}));
    }
    const auto rates = functional::stochastic_depth_rates(config.stochastic_depth, config.layers);
    const auto list = body->register_module("h", std::make_shared<Group>());
    for (const double rate : rates) {
      layers_.push_back(
          list->register_module(std::to_string(layers_.size()),
                                std::make_shared<TransformerLayer>(
                                    init, layer_options(config, !task.bidirectional, rate))));
    }
    for (const auto& layer : layers_) {
      if (layer->experts()) experts_.push_back(layer->experts());
    }
    norm_ = body->register_module("ln_f", std::make_shared<Norm>(init, norm_options(config)));
    if (!config.tied) {
      head_ = register_module(
          "lm_head", std::make_shared<Linear>(init, Linear::Options{.in = config.width,
                                                                    .out = task.classes,
                                                                    .bias = false,
                                                                    .init = inner_init(config),
                                                                    .is_head = true}));
    }
  }

  int64_t blocks() const override { return static_cast<int64_t>(layers_.size()); }
  std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const override {
    return {layers_.begin(), layers_.end()};
  }

  // Losses and statistics of experts do not pass from stage to stage.
  std::vector<std::string> cut_modules() const override {
    if (!experts_.empty()) return {};
    return numbered("transformer.h.", layers_.size());
  }
  std::vector<std::string> tied_parameters() const override {
    if (head_) return {};
    return {"transformer.wte.weight"};
  }

  bool has_auxiliary_loss() const override { return has_auxiliary_loss_; }
  int64_t statistics_size() const override {
    int64_t size = 0;
    for (const auto& layer : experts_) size += layer->statistics_size();
    return size;
  }
  void update_statistics(const at::Tensor& statistics) override {
    int64_t begin = 0;
    for (const auto& layer : experts_) {
      layer->update_statistics(statistics.narrow(0, begin, layer->statistics_size()));
      begin += layer->statistics_size();
    }
  }
  std::string statistics_report() override { return report_.next(experts_); }

  at::Tensor forward(const at::Tensor& tokens_BT) override {
    return forward_to_head(tokens_BT).logits();
  }
  Output forward_to_head(const at::Tensor& tokens_BT) override {
    return forward_blocks(tokens_BT, 0, blocks());
  }
  Output forward_blocks(const at::Tensor& x, int64_t begin, int64_t end) override {
    return run(x, {}, begin, end);
  }

  void parallelize(const std::shared_ptr<TensorParallel>& parallel) override {
    parallel_ = parallel;
    tokens_->parallelize(parallel);
    if (positions_) parallel->note_outside(positions_->weight());
    for (const auto& layer : layers_) layer->parallelize(parallel);
    norm_->parallelize(*parallel);
    if (head_) head_->parallelize(parallel, ParallelStyle::kColwise);
  }

  void divide_experts(const std::shared_ptr<TensorParallel>& parallel) override {
    require(!experts_.empty(),
            "parallel.name=expert divides experts among processes, and model.num_experts is 0; set "
            "it, or use another strategy");
    for (const auto& layer : layers_) layer->divide_experts(parallel);
  }

  void divide_tokens(const std::shared_ptr<const ContextParallel>& context) override {
    context_parallel_ = context;
    for (const auto& layer : layers_) layer->divide_tokens(context);
  }

  bool takes_packed_rows() const override { return true; }
  Output forward_packed(const at::Tensor& tokens_BT, const at::Tensor& position_ids_BT) override {
    return run(tokens_BT, position_ids_BT, 0, blocks());
  }
  void begin_pass(const at::Tensor& tokens_BT) override {
    if (parallel_) parallel_->begin_pass(tokens_BT.size(1));
    if (context_parallel_) context_parallel_->begin_pass(tokens_BT.size(1));
  }
  Output forward_packed_blocks(const at::Tensor& x, const at::Tensor& position_ids_BT,
                               int64_t begin, int64_t end) override {
    return run(x, position_ids_BT, begin, end);
  }

 private:
  struct Group : torch::nn::Module {};

  Output run(const at::Tensor& input, const at::Tensor& position_ids_BT, int64_t begin,
             int64_t end) {
    if (begin == 0) begin_pass(input);
    Routings routings;
    Stream stream_BTC{begin == 0 ? embedded(input, position_ids_BT) : input};
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      auto& layer = *layers_[i];
      auto output = run_block(i, stream_BTC, [&](const Stream& in_BTC) {
        return recomputes(i) ? layer.recomputed(in_BTC, position_ids_BT)
                             : layer.forward(in_BTC, position_ids_BT);
      });
      stream_BTC = output.stream_BTC;
      routings.add(output.routing);
    }
    if (end < blocks()) return {functional::sum_before_norm(stream_BTC)};
    const at::Tensor y_BTC = norm_->forward(stream_BTC).y;
    return {.x = parallel_ ? parallel_->enter(y_BTC) : y_BTC,
            .weight = head_ ? head_->weight() : tokens_->weight(),
            .auxiliary_loss = routings.mean_loss(),
            .step_statistics = routings.all_statistics(),
            .part = {parallel_, classes_},
            .context = context_parallel_};
  }

  at::Tensor embedded(const at::Tensor& tokens_BT, const at::Tensor& position_ids_BT) const {
    require(tokens_BT.size(1) <= context_, "gpt: " + std::to_string(tokens_BT.size(1)) +
                                               " tokens exceed the context of " +
                                               std::to_string(context_));
    const at::Tensor x_BTC = embed(tokens_BT, position_ids_BT);
    return functional::dropout(x_BTC, dropout_, is_training(), part_of(x_BTC));
  }

  kernel::DropoutPart part_of(const at::Tensor& x_BTC) const {
    if (parallel_) return parallel_->part_outside(x_BTC);
    return context_parallel_ ? context_parallel_->part_of_tokens(x_BTC) : kernel::DropoutPart();
  }

  // What all processes have, or this process's tokens of it.
  at::Tensor own_tokens(const at::Tensor& x, int64_t dim) const {
    if (parallel_) return parallel_->own_tokens(x, dim);
    return context_parallel_ ? context_parallel_->own_tokens(x, dim) : x;
  }

  // No token attends to padding, which may therefore be embedded as any token.
  at::Tensor embed(const at::Tensor& tokens_BT, const at::Tensor& position_ids_BT) const {
    at::Tensor plain_BT = padded_ ? tokens_BT.clamp_min(0) : tokens_BT;
    at::Tensor positions_TC = positions_ ? positions_->weight() : at::Tensor();
    if (context_parallel_) {
      plain_BT = context_parallel_->own_tokens(plain_BT, 1);
      if (positions_) positions_TC = context_parallel_->own_tokens(positions_TC, 0);
    }
    if (!positions_) return tokens_->forward(plain_BT);
    if (!position_ids_BT.defined()) return tokens_->forward(plain_BT, positions_TC);
    return tokens_->forward(plain_BT) + positions_->forward(own_tokens(position_ids_BT, 1));
  }

  double dropout_;
  int64_t context_;
  int64_t classes_;
  bool padded_;
  bool has_auxiliary_loss_;
  std::shared_ptr<const TensorParallel> parallel_;           // Null if it is whole.
  std::shared_ptr<const ContextParallel> context_parallel_;  // Null if it sees all tokens.
  std::shared_ptr<Embedding> tokens_;
  std::shared_ptr<Embedding> positions_;
  std::vector<std::shared_ptr<TransformerLayer>> layers_;
  std::vector<std::shared_ptr<MixtureOfExperts>> experts_;  // The layers that have experts.
  ExpertsReport report_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Linear> head_;
};

}  // namespace

void visit(config::Visitor& visitor, GptConfig& config) {
  visitor.field({.name = "layers", .help = "transformer layers", .min = 1}, config.layers);
  visitor.field({.name = "width", .help = "embedding dimension (d_model)", .min = 1}, config.width);
  visitor.field(kHeads, config.heads);
  visitor.field(kDropout, config.dropout);
  visitor.field(kStochasticDepth, config.stochastic_depth);
  visitor.field({.name = "bias", .help = "biases in linear layers and norms"}, config.bias);
  visitor.field({.name = "tied", .help = "tie the weights of the output layer and the embedding"},
                config.tied);
  visitor.field(
      {.name = "activation",
       .help = "activation function of the feed-forward layers; GPT-2 has gelu-tanh, Llama swiglu",
       .choices = {"gelu-tanh", "gelu", "swiglu"}},
      config.activation);
  visitor.field(
      {.name = "positions", .help = "positional encoding", .choices = {"learned", "rotary"}},
      config.positions);
  visitor.field({.name = "norm", .help = "layer norm or RMS norm", .choices = {"layer", "rms"}},
                config.norm);
  auto inits = init_names();
  inits.insert(inits.begin(), "gpt-2");
  visitor.field({.name = "linear_init",
                 .help = "weight initialization; gpt-2: normal, scaled down with depth",
                 .choices = inits},
                config.linear_init);
  visit(visitor, config.experts);
}

std::unique_ptr<Model> make_gpt(const GptConfig& config, const Task& task, InitialWeights weights) {
  require_text(task, "gpt");
  require(!task.padded || !task.bidirectional,
          "gpt would attend to the padding behind short texts; use model 'layers', such as "
          "examples/models/tagger.yaml");
  require(!config.tied || task.tokens() == task.classes,
          "gpt: with tied weights outputs are tokens, but the task has " +
              std::to_string(task.classes) + " classes; set model.tied to false");
  require(config.layers > 0 && config.width > 0 && config.heads > 0,
          "gpt: layers, width and heads must be positive");
  require_heads(config.width, config.heads, "gpt");
  check(config.experts, "gpt");
  require_stochastic_depth(config.stochastic_depth, config.layers, "gpt");
  require(config.positions != "rotary" || config.width / config.heads % 2 == 0,
          "gpt: rotary positions need heads of even width, but they have " +
              std::to_string(config.width / config.heads));
  return make_model(std::make_shared<Gpt>(config, task, weights));
}

}  // namespace gallop::model
