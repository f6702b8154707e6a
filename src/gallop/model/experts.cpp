// Shapes: B batch, T tokens of a row, N = B T, C width, E experts, k experts of a token.
#include "gallop/model/experts.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/autocast.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/expert_parallel.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/functional/swiglu.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

constexpr const char* kAuxLoss = "aux-loss";
constexpr const char* kSeqAuxLoss = "seq-aux-loss";
constexpr const char* kBias = "bias";
constexpr const char* kNone = "none";

// While it is alive, this thread computes without autocast.
class NoAutocast {
 public:
  explicit NoAutocast(at::DeviceType device)
      : device_(device), before_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device_, false);
  }
  ~NoAutocast() { at::autocast::set_autocast_enabled(device_, before_); }
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  at::DeviceType device_;
  bool before_;
};

// Each expert begins as a network of its own would.
at::Tensor expert_weights(Initializer& initializer, int64_t count, at::IntArrayRef sizes,
                          const InitScheme& scheme) {
  std::vector<at::Tensor> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(initializer.weight(sizes, scheme));
  return at::stack(all);
}

bool has_aux_loss(const ExpertsConfig& config) {
  return config.aux_loss_coef > 0 &&
         (config.load_balancing == kSeqAuxLoss || config.load_balancing == kAuxLoss);
}

struct Group : torch::nn::Module {
  at::Tensor add(const char* name, at::Tensor weight) {
    const auto module = register_module(name, std::make_shared<Group>());
    return module->register_parameter("weight", std::move(weight));
  }
};

}  // namespace

void visit(config::Visitor& visitor, ExpertsConfig& config) {
  visitor.field({.name = "num_experts",
                 .help = "number of experts per feed-forward layer (mixture of experts, without "
                         "biases); 0: a dense layer",
                 .min = 0},
                config.num_experts);
  visitor.field({.name = "top_k",
                 .help = "number of experts that the router chooses for each token",
                 .min = 1},
                config.top_k);
  visitor.field({.name = "capacity_factor",
                 .help = "capacity of an expert in training, as a multiple of the mean number of "
                         "tokens per expert; tokens beyond it are dropped; 0: no limit",
                 .min = 0},
                config.capacity_factor);
  visitor.field(
      {.name = "load_balancing",
       .help =
           "how the load of experts is balanced: by an auxiliary loss over each row (seq-aux-loss) "
           "or over all tokens of a micro-batch (aux-loss), or by a bias in the choice of experts",
       .choices = {kSeqAuxLoss, kAuxLoss, kBias, kNone}},
      config.load_balancing);
  visitor.field({.name = "aux_loss_coef", .help = "weight of the auxiliary loss", .min = 0},
                config.aux_loss_coef);
  visitor.field({.name = "z_loss_coef", .help = "weight of the router's z-loss", .min = 0},
                config.z_loss_coef);
  visitor.field({.name = "bias_update_rate",
                 .help = "change of an expert's bias in each step; for load_balancing=bias",
                 .min = 0},
                config.bias_update_rate);
}

void check(const ExpertsConfig& config, const std::string& model) {
  if (config.num_experts == 0) {
    const ExpertsConfig none;
    const auto require_default = [&](bool is_default, const char* option) {
      require(is_default, fmt::format("{}: model.{} has no effect without experts: set "
                                      "model.num_experts, or omit it",
                                      model, option));
    };
    require_default(config.top_k == none.top_k, "top_k");
    require_default(config.capacity_factor == none.capacity_factor, "capacity_factor");
    require_default(config.load_balancing == none.load_balancing, "load_balancing");
    require_default(config.aux_loss_coef == none.aux_loss_coef, "aux_loss_coef");
    require_default(config.z_loss_coef == none.z_loss_coef, "z_loss_coef");
    require_default(config.bias_update_rate == none.bias_update_rate, "bias_update_rate");
    return;
  }
  require(config.num_experts > 1,
          model + ": model.num_experts is 1, which leaves nothing to choose; set it to 0");
  require(config.top_k <= config.num_experts,
          fmt::format("{}: model.top_k is {}, but there are {} experts (model.num_experts)", model,
                      config.top_k, config.num_experts));
}

bool has_loss(const ExpertsConfig& config) {
  return config.num_experts > 0 && (has_aux_loss(config) || config.z_loss_coef > 0);
}

void Routings::add(const Routing& of_layer) {
  if (of_layer.loss.defined()) losses_.push_back(of_layer.loss);
  if (of_layer.statistics.defined()) statistics_.push_back(of_layer.statistics);
}

at::Tensor Routings::mean_loss() const {
  return losses_.empty() ? at::Tensor() : at::stack(losses_).mean();
}

at::Tensor Routings::all_statistics() const {
  return statistics_.empty() ? at::Tensor() : at::cat(statistics_);
}

MixtureOfExperts::MixtureOfExperts(Initializer& initializer, const Options& options)
    : options_(options) {
  const FeedForward::Options& expert = options.expert;
  const int64_t count = options.config.num_experts;
  router_ = register_module(
      "router", std::make_shared<Linear>(initializer, Linear::Options{.in = expert.width,
                                                                      .out = count,
                                                                      .bias = false,
                                                                      .init = expert.expand_init,
                                                                      .is_head = true}));
  const bool is_gated = expert.activation == FeedForward::Activation::kSwiglu;
  const auto experts = register_module("experts", std::make_shared<Group>());
  expand_ = experts->add(
      expert.expand_name,
      expert_weights(initializer, count, {is_gated ? 2 * expert.inner : expert.inner, expert.width},
                     expert.expand_init));
  contract_ = experts->add(
      expert.contract_name,
      expert_weights(initializer, count, {expert.width, expert.inner}, expert.contract_init));
  const auto zeros = [&](at::IntArrayRef sizes, at::ScalarType type) {
    return at::zeros(sizes, expand_.options().dtype(type).requires_grad(false));
  };
  if (options.config.load_balancing == kBias) {
    expert_bias_ = register_buffer("expert_bias", zeros({count}, at::kFloat));
  }
  tokens_per_expert_ = register_buffer("tokens_per_expert", zeros({count}, at::kLong));
  dropped_tokens_ = register_buffer("dropped_tokens", zeros({}, at::kLong));
}

void MixtureOfExperts::divide_experts(const std::shared_ptr<TensorParallel>& parallel) {
  require_divisible("expert", parallel->group().size(), options_.config.num_experts, "experts",
                    "model.num_experts");
  parallel_ = parallel;
  for (const at::Tensor& weight : {expand_, contract_}) parallel->shard(weight, 0);
}

at::Tensor MixtureOfExperts::router_logits(const at::Tensor& x) const {
  const NoAutocast no_autocast(x.device().type());
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return functional::linear(x.to(wide), router_->weight().to(wide), {});
}

at::Tensor MixtureOfExperts::expand(const at::Tensor& rows,
                                    const functional::ExpertOrder& order) const {
  const at::Tensor inner = functional::expert_linear(rows, expand_, order);
  switch (options_.expert.activation) {
    case FeedForward::Activation::kGelu:
      return functional::activation(kernel::Activation::kGelu, inner);
    case FeedForward::Activation::kGeluTanh:
      return functional::activation(kernel::Activation::kGeluTanh, inner);
    case FeedForward::Activation::kSwiglu: return functional::swiglu(inner);
  }
  throw InternalError("an expert without an activation");
}

// The results of copies in the order of this process.
at::Tensor MixtureOfExperts::compute(const at::Tensor& rows,
                                     const functional::ExpertOrder& order) const {
  if (!parallel_) return functional::expert_linear(expand(rows, order), contract_, order);
  const TensorGroup& group = parallel_->group();
  const auto route = functional::route_to_experts(order, group);
  const at::Tensor here =
      functional::send_to_experts(rows.to(functional::product_format(rows)), route, group);
  return functional::send_from_experts(
      functional::expert_linear(expand(here, route.here), contract_, route.here), route, group);
}

// Evaluations drop nothing, so that a prediction does not depend on the others of its batch.
int64_t MixtureOfExperts::capacity(int64_t tokens) const {
  const ExpertsConfig& config = options_.config;
  if (config.capacity_factor == 0 || !is_training()) return 0;
  const double mean =
      static_cast<double>(tokens * config.top_k) / static_cast<double>(config.num_experts);
  return std::max<int64_t>(1, std::llround(std::ceil(mean * config.capacity_factor)));
}

Branch MixtureOfExperts::forward(const at::Tensor& x_BTC, Routing& routing) {
  const ExpertsConfig& config = options_.config;
  const at::Tensor x_NC = x_BTC.flatten(0, 1);
  const at::Tensor logits_NE = router_logits(x_NC);
  const at::Tensor p_NE = at::softmax(logits_NE, -1);
  const at::Tensor scores_NE =
      expert_bias_.defined() ? p_NE.detach().add(expert_bias_) : p_NE.detach();
  const at::Tensor experts_Nk = std::get<1>(at::topk(scores_NE, config.top_k, -1));
  at::Tensor weights_Nk = p_NE.gather(-1, experts_Nk);
  if (config.top_k > 1) weights_Nk = weights_Nk.div(weights_Nk.sum(-1, /*keepdim=*/true));

  const int64_t most = capacity(x_NC.size(0));
  const auto order = functional::order_by_expert(experts_Nk, config.num_experts, most);
  if (most > 0) weights_Nk = weights_Nk.mul(functional::computed_copies(order, experts_Nk));
  const at::Tensor y_NC =
      functional::combine(compute(functional::dispatch(x_NC, order), order), weights_Nk, order);
  if (is_training()) {
    routing.loss = router_loss(logits_NE, p_NE, experts_Nk, x_BTC.size(0));
    const at::Tensor computed = order.ranges.select(1, 1).sub(order.ranges.select(1, 0));
    const at::Tensor dropped = order.counts.sub(computed).sum().reshape({1});
    routing.statistics = at::cat({order.counts, dropped}).to(at::kDouble);
  }
  return {functional::dropout(y_NC.view(x_BTC.sizes()), options_.expert.dropout, is_training())};
}

// Summed over the tokens; undefined without such losses.
at::Tensor MixtureOfExperts::router_loss(const at::Tensor& logits_NE, const at::Tensor& p_NE,
                                         const at::Tensor& experts_Nk, int64_t rows) const {
  const ExpertsConfig& config = options_.config;
  // A process without tokens has a loss of 0 with a gradient, so that its backward pass is that of
  // the others; means over them would be NaN.
  if (rows == 0) return has_loss(config) ? p_NE.sum() : at::Tensor();
  at::Tensor loss;
  if (has_aux_loss(config)) {
    const int64_t groups = config.load_balancing == kSeqAuxLoss ? rows : 1;
    const auto mean = [&](const at::Tensor& x_NE) {
      return x_NE.view({groups, x_NE.size(0) / groups, config.num_experts}).mean(1);
    };
    const at::Tensor sent_NE = at::zeros_like(p_NE.detach()).scatter(-1, experts_Nk, 1.0);
    const double tokens = static_cast<double>(p_NE.size(0)) / static_cast<double>(groups);
    loss = mean(sent_NE)
               .mul(mean(p_NE))
               .sum()
               .mul(config.aux_loss_coef * tokens * static_cast<double>(config.num_experts));
  }
  if (config.z_loss_coef > 0) {
    const at::Tensor z = at::logsumexp(logits_NE, {-1}).square().sum().mul(config.z_loss_coef);
    loss = loss.defined() ? loss.add(z) : z;
  }
  return loss;
}

void MixtureOfExperts::update_statistics(const at::Tensor& statistics) {
  const at::NoGradGuard no_grad;
  const at::Tensor sent = statistics.slice(0, 0, options_.config.num_experts);
  tokens_per_expert_.add_(sent.to(at::kLong));
  dropped_tokens_.add_(statistics.select(0, options_.config.num_experts).to(at::kLong));
  if (!expert_bias_.defined()) return;
  expert_bias_.add_(
      sent.mean().sub(sent).sign().mul(options_.config.bias_update_rate).to(at::kFloat));
}

std::string ExpertsReport::next(const std::vector<std::shared_ptr<MixtureOfExperts>>& layers) {
  double most = 0, sent = 0, dropped = 0;
  std::vector<at::Tensor> now;
  for (size_t i = 0; i < layers.size(); ++i) {
    now.push_back(
        at::cat({layers[i]->tokens_per_expert(), layers[i]->dropped_tokens().reshape({1})})
            .cpu()
            .to(at::kDouble));
    const at::Tensor since = i < before_.size() ? now[i].sub(before_[i]) : now[i];
    const auto experts = since.size(0) - 1;
    const at::Tensor tokens = since.slice(0, 0, experts);
    const double all = tokens.sum().item<double>();
    if (all > 0) most = std::max(most, tokens.max().item<double>() * experts / all);
    sent += all;
    dropped += since[experts].item<double>();
  }
  before_ = std::move(now);
  if (sent == 0) return {};
  const std::string balance =
      fmt::format("experts: the busiest one of a layer got {:.2f} times the mean", most);
  if (dropped == 0) return balance + ", nothing was dropped";
  return balance + fmt::format(", {:.2f} % of tokens' copies were dropped", 100 * dropped / sent);
}

}  // namespace gallop::model
