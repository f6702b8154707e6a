// Shapes: N batch, T steps, C input channels, H hidden, G gates (4 of an LSTM, 3 of a GRU).
#include "gallop/model/layer/recurrent.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/linear.h"

namespace gallop::model {

namespace {

enum class Cell { kLstm, kGru };

// The weights of one layer in one direction.
struct Weights {
  at::Tensor input, hidden;            // [G H, C] and [G H, H].
  at::Tensor input_bias, hidden_bias;  // [G H]
};

class Recurrent final : public Layer {
 public:
  Recurrent(const RecurrentConfig& config, LayerContext& context, Cell cell)
      : config_(config), cell_(cell), mask_(context.mask) {
    const int64_t gates = cell == Cell::kLstm ? 4 : 3, hidden = config.hidden;
    int64_t channels = context.shape.channels();
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      for (int64_t direction = 0; direction < directions(); ++direction) {
        const std::string suffix =
            "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
        // As in PyTorch, all are uniform within 1 / sqrt(H), like a bias with fan_in H.
        const auto add = [&](const char* name, at::IntArrayRef sizes) {
          int64_t count = 1;
          for (const int64_t size : sizes) count *= size;
          return module_->register_parameter(
              name + suffix, context.initializer.bias(count, hidden, {}).view(sizes).clone());
        };
        weights_.push_back({.input = add("weight_ih", {gates * hidden, channels}),
                            .hidden = add("weight_hh", {gates * hidden, hidden}),
                            .input_bias = add("bias_ih", {gates * hidden}),
                            .hidden_bias = add("bias_hh", {gates * hidden})});
      }
      channels = directions() * hidden;
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x_NTC = input;
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      if (layer > 0) x_NTC = functional::dropout(x_NTC, config_.dropout, module_->is_training());
      std::vector<at::Tensor> outputs;
      for (int64_t direction = 0; direction < directions(); ++direction) {
        const Weights& weights = weights_[static_cast<size_t>(layer * directions() + direction)];
        outputs.push_back(run(x_NTC, weights, /*is_reversed=*/direction == 1));
      }
      x_NTC = outputs.size() == 1 ? outputs.front() : at::cat(outputs, 2);
    }
    return x_NTC;
  }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  struct Holder : torch::nn::Module {};

  int64_t directions() const { return config_.bidirectional ? 2 : 1; }

  at::Tensor run(const at::Tensor& x_NTC, const Weights& weights, bool is_reversed) const {
    // One GEMM for the input contributions of all steps.
    const at::Tensor from_input_NTG = functional::linear(x_NTC, weights.input, weights.input_bias);
    const int64_t steps = x_NTC.size(1);
    at::Tensor h_NH = at::zeros({x_NTC.size(0), config_.hidden}, from_input_NTG.options());
    at::Tensor c_NH = at::zeros_like(h_NH, at::kFloat);
    std::vector<at::Tensor> outputs(static_cast<size_t>(steps));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = is_reversed ? steps - 1 - i : i;
      const at::Tensor from_input_NG = from_input_NTG.select(1, t);
      const at::Tensor from_hidden_NG =
          functional::linear(h_NH, weights.hidden, weights.hidden_bias);
      if (cell_ == Cell::kLstm) {
        step_lstm(from_input_NG.add(from_hidden_NG), h_NH, c_NH);
      } else {
        step_gru(from_input_NG, from_hidden_NG, h_NH);
      }
      // Reversed sequences start with padding, so the state is reset until the last token.
      if (is_reversed && mask_) {
        const at::Tensor is_token_N1 = mask_->is_token_NT.narrow(1, t, 1);
        h_NH = h_NH.mul(is_token_N1);
        c_NH = c_NH.mul(is_token_N1);
      }
      outputs[static_cast<size_t>(t)] = h_NH;
    }
    return at::stack(outputs, 1);
  }

  // The state is fp32, even if GEMMs are in bf16.
  static void step_lstm(const at::Tensor& gates_NG, at::Tensor& h_NH, at::Tensor& c_NH) {
    const auto gates = gates_NG.to(at::kFloat).chunk(4, 1);
    c_NH = gates[1].sigmoid().mul(c_NH).add(gates[0].sigmoid().mul(gates[2].tanh()));
    h_NH = gates[3].sigmoid().mul(c_NH.tanh()).to(gates_NG.scalar_type());
  }

  static void step_gru(const at::Tensor& from_input_NG, const at::Tensor& from_hidden_NG,
                       at::Tensor& h_NH) {
    const auto input = from_input_NG.to(at::kFloat).chunk(3, 1);
    const auto hidden = from_hidden_NG.to(at::kFloat).chunk(3, 1);
    const at::Tensor reset = input[0].add(hidden[0]).sigmoid();
    const at::Tensor update = input[1].add(hidden[1]).sigmoid();
    const at::Tensor candidate = input[2].add(reset.mul(hidden[2])).tanh();
    h_NH = candidate.add(update.mul(h_NH.sub(candidate))).to(from_input_NG.scalar_type());
  }

  RecurrentConfig config_;
  Cell cell_;
  std::shared_ptr<const SequenceMask> mask_;  // Null where nothing is padded.
  std::vector<Weights> weights_;              // Indexed by layer, then direction.
  std::shared_ptr<Holder> module_ = std::make_shared<Holder>();
};

std::unique_ptr<Layer> make(const RecurrentConfig& config, LayerContext& context, Cell cell) {
  context.require_sequence();
  context.require(config.hidden > 0, "needs hidden, the number of its outputs");
  context.require(!context.causal || !config.bidirectional,
                  "a bidirectional layer sees the tokens that it is to predict; set bidirectional "
                  "to false");
  auto layer = std::make_unique<Recurrent>(config, context, cell);
  context.shape = context.shape.with_channels((config.bidirectional ? 2 : 1) * config.hidden);
  return layer;
}

}  // namespace

void visit(config::Visitor& visitor, RecurrentConfig& config) {
  visitor.field({.name = "hidden", .help = "hidden size", .min = 1}, config.hidden);
  visitor.field({.name = "layers", .help = "number of stacked layers", .min = 1}, config.layers);
  visitor.field({.name = "bidirectional", .help = "process the sequence in both directions"},
                config.bidirectional);
  config::Field dropout = kDropout;
  dropout.help = "dropout probability between layers";
  visitor.field(dropout, config.dropout);
}

std::unique_ptr<Layer> make_lstm(const RecurrentConfig& config, LayerContext& context) {
  return make(config, context, Cell::kLstm);
}

std::unique_ptr<Layer> make_gru(const RecurrentConfig& config, LayerContext& context) {
  return make(config, context, Cell::kGru);
}

}  // namespace gallop::model
