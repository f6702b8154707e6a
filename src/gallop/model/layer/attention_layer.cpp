#include "gallop/model/layer/attention_layer.h"

#include "gallop/model/attention.h"
#include "gallop/model/fields.h"

namespace gallop::model {

namespace {

class AttentionLayer final : public Layer {
 public:
  AttentionLayer(LayerContext& context, const SelfAttention::Options& options)
      : attention_(std::make_shared<SelfAttention>(context.initializer, options)),
        mask_(context.mask),
        is_causal_(options.causal) {}

  at::Tensor forward(const at::Tensor& x) override {
    SelfAttention::Mask mask;
    if (mask_) mask.position_ids_BT = mask_->position_ids_NT;
    // Padding is at the end: with causal attention no token attends to it.
    if (mask_ && !is_causal_) mask.is_token_BT = mask_->is_token_NT;
    const Branch branch = attention_->forward(x, mask);
    return branch.bias.defined() ? branch.value.add(branch.bias) : branch.value;
  }
  bool takes_packed_rows() const override { return true; }
  std::shared_ptr<torch::nn::Module> module() const override { return attention_; }

 private:
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<const SequenceMask> mask_;  // Null where nothing is padded.
  bool is_causal_;
};

}  // namespace

void visit(config::Visitor& visitor, AttentionConfig& config) {
  visitor.field(kHeads, config.heads);
  visitor.field({.name = "causal",
                 .help = "a position attends only to itself and those before it; auto: for text",
                 .choices = {"auto", "true", "false"}},
                config.causal);
  visitor.field({.name = "rotary", .help = "rotary position embedding"}, config.rotary);
  visitor.field({.name = "bias", .help = "biases of its linear layers"}, config.bias);
  visitor.field(kDropout, config.dropout);
}

std::unique_ptr<Layer> make_attention(const AttentionConfig& config, LayerContext& context) {
  context.require_sequence();
  const int64_t width = context.shape.channels();
  context.require(width % config.heads == 0, std::to_string(config.heads) +
                                                 " heads do not divide the " +
                                                 std::to_string(width) + " channels of its input");
  context.require(!config.rotary || width / config.heads % 2 == 0,
                  "rotary positions need heads of even width, but they have " +
                      std::to_string(width / config.heads));
  context.require(!context.causal || config.causal != "false",
                  "without causal, a position sees the tokens that it is to predict");
  return std::make_unique<AttentionLayer>(
      context, SelfAttention::Options{
                   .width = width,
                   .heads = config.heads,
                   .causal = config.causal == "true" || (config.causal == "auto" && context.causal),
                   .bias = config.bias,
                   .rotary = config.rotary,
                   .dropout = config.dropout,
                   .input_name = "qkv",
                   .output_name = "proj",
                   .input_init = context.linear_init,
                   .output_init = context.linear_init});
}

}  // namespace gallop::model
