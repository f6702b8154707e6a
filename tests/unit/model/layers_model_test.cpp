// Models of layers from a recipe against PyTorch's modules (torch::nn) with the same weights.
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "unit/model/built_layers.h"

namespace gallop::model {
namespace {

// Copies the weights in order, then compares outputs and gradients.
void expect_equal(Model& model, const std::vector<at::Tensor>& others,
                  const std::function<at::Tensor(const at::Tensor&)>& other,
                  const at::Tensor& input) {
  const auto own = parameters_of(model);
  ASSERT_EQ(own.size(), others.size());
  {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < own.size(); ++i) {
      ASSERT_EQ(own[i].sizes(), others[i].sizes()) << i;
      others[i].copy_(own[i]);
    }
  }
  const at::Tensor y = model.forward(input), wanted = other(input);
  ASSERT_EQ(y.sizes(), wanted.sizes());
  EXPECT_TRUE(at::allclose(y, wanted, 1e-5, 1e-5)) << (y - wanted).abs().max().item<double>();
  const at::Tensor direction = at::randn(y.sizes());
  y.mul(direction).sum().backward();
  wanted.mul(direction).sum().backward();
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_TRUE(at::allclose(own[i].grad(), others[i].grad(), 1e-4, 1e-4))
        << i << ": " << (own[i].grad() - others[i].grad()).abs().max().item<double>();
  }
}

// The loss computes the last layer of all by itself, but not the last one of a container.
TEST(LayersModel, HaveTheSameLogitsInTheLoss) {
  const at::Tensor tokens = at::randint(17, {4, 9}, at::kLong), images = at::rand({4, 3, 12, 12});
  const std::pair<const char*, bool> kCases[] = {
      {"[{embedding: 8}, {sequential: [layer-norm, {linear: {bias: false}}]}]", true},
      {"[{embedding: 8}, layer-norm, {linear: {bias: false}}]", true},
      {"[flatten, {sequential: [{linear: 64}, relu, {linear: {bias: false}}]}]", false}};
  for (const auto& [layers, is_text] : kCases) {
    SCOPED_TRACE(layers);
    const auto model = build(layers, is_text ? kText : kImages);
    const at::Tensor& input = is_text ? tokens : images;
    const Output output = model->forward_to_head(input);
    EXPECT_TRUE(at::allclose(output.logits(), model->forward(input), 1e-5, 1e-6));
    output.logits().square().sum().backward();
    for (const auto& [name, tensor] : model->parameters()) {
      EXPECT_TRUE(tensor.grad().defined()) << name;
    }
    const auto blocks = static_cast<int64_t>(model->block_sequence().tensors.size());
    const NamedTensors batch = {{"input", input}};
    const Output first = model->forward_blocks(batch, {}, 0, 1);
    EXPECT_TRUE(blocks < 2 ||
                at::allclose(model->forward_blocks(batch, first.passed_on, 1, blocks).logits(),
                             model->forward(input), 1e-5, 1e-6));
  }
}

TEST(LayersModel, EqualsTorchOfAConvolutionalNetwork) {
  const auto model = build(
      "[{conv: {channels: 8, kernel: 3, bias: false}}, batch-norm, relu, max-pool,"
      " {conv: {channels: 12, kernel: 3, stride: 2, padding: 1, groups: 4}}, {group-norm: 3}, silu,"
      " {conv: {channels: 6, kernel: 3, padding: 2, dilation: 2}}, {leaky-relu: 0.2}, flatten,"
      " {linear: 7}, gelu, linear]",
      kImages);
  namespace nn = torch::nn;
  nn::Sequential other(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)),
                       nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Conv2d(nn::Conv2dOptions(8, 12, 3).stride(2).padding(1).groups(4)),
                       nn::GroupNorm(3, 12), nn::SiLU(),
                       nn::Conv2d(nn::Conv2dOptions(12, 6, 3).padding(2).dilation(2)),
                       nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::Flatten(),
                       nn::Linear(54, 7), nn::GELU(), nn::Linear(7, 5));
  expect_equal(
      *model, other->parameters(), [&](const at::Tensor& x) { return other->forward(x); },
      at::rand({4, 3, 12, 12}));
}

TEST(LayersModel, EqualsTorchOfTransposedConvolutionsAndPooling) {
  const auto model = build(
      "[{conv-transpose: {channels: 6, kernel: 3, stride: 2, padding: 1, output_padding: 1}}, elu,"
      " {avg-pool: {kernel: 3, stride: 2, padding: 1}}, {upsample: {scale: 2, mode: bilinear}},"
      " hardswish, global-avg-pool, linear]",
      kImages);
  namespace nn = torch::nn;
  nn::Sequential other(
      nn::ConvTranspose2d(
          nn::ConvTranspose2dOptions(3, 6, 3).stride(2).padding(1).output_padding(1)),
      nn::ELU(), nn::AvgPool2d(nn::AvgPool2dOptions(3).stride(2).padding(1)),
      nn::Upsample(nn::UpsampleOptions()
                       .scale_factor(std::vector<double>{2, 2})
                       .mode(torch::kBilinear)
                       .align_corners(false)),
      nn::Functional([](const at::Tensor& x) { return at::hardswish(x); }),
      nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(6, 5));
  expect_equal(
      *model, other->parameters(), [&](const at::Tensor& x) { return other->forward(x); },
      at::rand({3, 3, 12, 12}));
}

TEST(LayersModel, EqualsTorchOfRecurrentLayers) {
  namespace nn = torch::nn;
  const at::Tensor tokens = at::randint(17, {4, 9}, at::kLong);
  const auto lstm = build("[{embedding: 6}, {lstm: {hidden: 8, layers: 2}}, linear]", kText);
  nn::Embedding lstm_embedding(17, 6);
  nn::LSTM lstm_layer(nn::LSTMOptions(6, 8).num_layers(2).batch_first(true));
  nn::Linear lstm_head(8, 17);
  std::vector<at::Tensor> others = lstm_embedding->parameters();
  for (const auto& tensor : lstm_layer->parameters()) others.push_back(tensor);
  for (const auto& tensor : lstm_head->parameters()) others.push_back(tensor);
  expect_equal(
      *lstm, others,
      [&](const at::Tensor& x) {
        return lstm_head(std::get<0>(lstm_layer->forward(lstm_embedding(x))));
      },
      tokens);

  const auto gru = build(
      "[to-sequence, {gru: {hidden: 7, bidirectional: true}}, global-avg-pool, linear]", kImages);
  nn::GRU gru_layer(nn::GRUOptions(3, 7).bidirectional(true).batch_first(true));
  nn::Linear gru_head(14, 5);
  others = gru_layer->parameters();
  for (const auto& tensor : gru_head->parameters()) others.push_back(tensor);
  expect_equal(
      *gru, others,
      [&](const at::Tensor& x) {
        const at::Tensor sequence = x.flatten(2).transpose(1, 2);
        return gru_head(std::get<0>(gru_layer->forward(sequence)).mean(1));
      },
      at::rand({2, 3, 12, 12}));
}

TEST(LayersModel, EqualsTorchOfRecurrentLayersOverColumns) {
  namespace nn = torch::nn;
  Task task = kImages;
  task.sequences = true;
  const auto model =
      build("[{max-pool: {kernel: 3}}, {to-sequence: columns}, {gru: 7}, linear]", task);
  nn::GRU gru(nn::GRUOptions(12, 7).batch_first(true));
  nn::Linear head(7, 5);
  std::vector<at::Tensor> others = gru->parameters();
  for (const auto& tensor : head->parameters()) others.push_back(tensor);
  expect_equal(
      *model, others,
      [&](const at::Tensor& x) {
        const at::Tensor columns = at::max_pool2d(x, 3).permute({0, 3, 1, 2}).reshape({2, 4, 12});
        return head(std::get<0>(gru->forward(columns)));
      },
      at::rand({2, 3, 12, 12}));
}

TEST(LayersModel, EqualsTorchOfRecurrentLayersOverNumbers) {
  namespace nn = torch::nn;
  const auto model = build(
      "[{lstm: {hidden: 6, bidirectional: true}}, {gru: 7}, global-avg-pool, linear]", kSequences);
  nn::LSTM lstm(nn::LSTMOptions(3, 6).bidirectional(true).batch_first(true));
  nn::GRU gru(nn::GRUOptions(12, 7).batch_first(true));
  nn::Linear head(7, 5);
  std::vector<at::Tensor> others = lstm->parameters();
  for (const auto& tensor : gru->parameters()) others.push_back(tensor);
  for (const auto& tensor : head->parameters()) others.push_back(tensor);
  expect_equal(
      *model, others,
      [&](const at::Tensor& x) {
        return head(std::get<0>(gru->forward(std::get<0>(lstm->forward(x)))).mean(1));
      },
      at::randn({4, 12, 3}));
}

TEST(LayersModel, EqualsTorchOfAConvolutionalNetworkOverNumbers) {
  const auto model = build(
      "[{conv: {channels: 8, kernel: 5}}, batch-norm, relu, {max-pool: {kernel: 3, stride: 2, "
      "padding: 1}}, {conv-transpose: {channels: 4, kernel: 4, padding: 1}}, gelu, {avg-pool: "
      "{kernel: 3, padding: 1}}, {conv: {channels: 6, kernel: 3, stride: 2, padding: 1}}, flatten, "
      "linear]",
      kSequences);
  namespace nn = torch::nn;
  nn::Sequential other(
      nn::Conv1d(nn::Conv1dOptions(3, 8, 5).padding(2)), nn::BatchNorm1d(8), nn::ReLU(),
      nn::MaxPool1d(nn::MaxPool1dOptions(3).stride(2).padding(1)),
      nn::ConvTranspose1d(nn::ConvTranspose1dOptions(8, 4, 4).stride(2).padding(1)), nn::GELU(),
      nn::AvgPool1d(nn::AvgPool1dOptions(3).padding(1)),
      nn::Conv1d(nn::Conv1dOptions(4, 6, 3).stride(2).padding(1)),
      // Sequences have the channels last, so that flatten has them in another order than PyTorch.
      nn::Functional([](const at::Tensor& x) { return x.transpose(1, 2).flatten(1); }),
      nn::Linear(12, 5));
  expect_equal(
      *model, other->parameters(),
      [&](const at::Tensor& x) { return other->forward(x.transpose(1, 2)); },
      at::randn({4, 12, 3}));
}

TEST(LayersModel, AttendsToAllStepsOfNumbers) {
  const auto model = build(
      "[{linear: 8}, position-embedding, {residual: [layer-norm, {attention: 2}]}, "
      "global-avg-pool, linear]",
      kSequences);
  const at::Tensor x = at::randn({2, 12, 3});
  const at::Tensor y = model->forward(x);
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{2, 5}));
  // Attention sees later steps, and each sample alone.
  at::Tensor changed = x.clone();
  changed[0][11][0] = 9;
  const at::Tensor moved = model->forward(changed);
  EXPECT_FALSE(at::allclose(moved[0], y[0]));
  EXPECT_TRUE(at::allclose(moved[1], y[1], 1e-5, 1e-6));
}

TEST(LayersModel, EqualsTorchOfCausalConvolutions) {
  const auto model = build(
      "[{embedding: 6}, {conv: {channels: 10, kernel: 3, dilation: 2}}, tanh, linear]", kText);
  namespace nn = torch::nn;
  nn::Embedding embedding(17, 6);
  nn::Conv1d conv(nn::Conv1dOptions(6, 10, 3).dilation(2));
  nn::Linear head(10, 17);
  std::vector<at::Tensor> others = embedding->parameters();
  for (const auto& tensor : conv->parameters()) others.push_back(tensor);
  for (const auto& tensor : head->parameters()) others.push_back(tensor);
  expect_equal(
      *model, others,
      [&](const at::Tensor& x) {
        const at::Tensor padded = at::constant_pad_nd(embedding(x).transpose(1, 2), {4, 0});
        return head(conv(padded).transpose(1, 2).tanh());
      },
      at::randint(17, {4, 9}, at::kLong));
}

TEST(LayersModel, EqualsTorchOfResidualsAndBranches) {
  const auto model = build(
      "[{residual: {layers: [{conv: {channels: 4, kernel: 3, stride: 2}}, relu],"
      " shortcut: [{conv: {channels: 4, kernel: 1, stride: 2}}]}}, {residual: [{conv: 4}, tanh]},"
      " {concat: [identity, {sequential: [{conv: {channels: 2, kernel: 1}}, sigmoid]}]},"
      " {add: [{conv: {channels: 3, kernel: 1}}, {conv: {channels: 3, kernel: 5}}]},"
      " global-avg-pool, linear]",
      kImages);
  namespace nn = torch::nn;
  const auto conv = [](int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
  };
  std::vector<nn::Conv2d> convs = {conv(3, 4, 3, 2), conv(3, 4, 1, 2), conv(4, 4, 3),
                                   conv(4, 2, 1),    conv(6, 3, 1),    conv(6, 3, 5)};
  nn::Linear head(3, 5);
  std::vector<at::Tensor> others;
  for (auto& one : convs) {
    for (const auto& tensor : one->parameters()) others.push_back(tensor);
  }
  for (const auto& tensor : head->parameters()) others.push_back(tensor);
  expect_equal(
      *model, others,
      [&](const at::Tensor& input) {
        at::Tensor x = convs[0](input).relu() + convs[1](input);
        x = convs[2](x).tanh() + x;
        x = at::cat({x, convs[3](x).sigmoid()}, 1);
        x = convs[4](x) + convs[5](x);
        return head(x.mean({2, 3}));
      },
      at::rand({4, 3, 12, 12}));
}

TEST(LayersModel, EmbedsEachViewOfASample) {
  Task images = kImages, sequences = kSequences;
  for (Task* const task : {&images, &sequences}) {
    task->classes = 0;
    task->views = 3;
  }
  const at::Tensor pictures = at::rand({2, 3, 3, 12, 12}), series = at::rand({2, 3, 12, 3});
  for (const auto& [layers, task, input] : std::vector<std::tuple<std::string, Task, at::Tensor>>{
           {"[{conv: {channels: 4, kernel: 3}}, relu, flatten, {linear: 7}]", images, pictures},
           {"[{lstm: 5}, global-avg-pool, {linear: {features: 7, bias: false}}]", sequences,
            series}}) {
    const auto model = build(layers, task);
    const at::Tensor all = model->forward(input);
    EXPECT_EQ(all.sizes(), (std::vector<int64_t>{2, 3, 7})) << layers;
    EXPECT_TRUE(at::allclose(model->forward_to_head(input).logits(), all, 1e-5, 1e-6)) << layers;
    Task one_view = task;
    one_view.classes = 7;
    one_view.views = 1;
    const auto alone = build(layers, one_view);
    for (int64_t view = 0; view < 3; ++view) {
      const at::Tensor one = model->forward(input.narrow(1, view, 1));
      EXPECT_TRUE(at::allclose(all.select(1, view), one.select(1, 0), 1e-5, 1e-6)) << layers;
      EXPECT_TRUE(
          at::allclose(all.select(1, view), alone->forward(input.select(1, view)), 1e-5, 1e-6))
          << layers;
    }
  }
  EXPECT_NE(mistake("[{conv: 4}]", images).find("a vector, the embedding of a view"),
            std::string::npos);
}

TEST(LayersModel, RecomputesBlocksWithTheSameGradients) {
  const auto layers =
      "[{embedding: 8}, {residual: [layer-norm, {linear: 8}, gelu, {dropout: 0.3}]},"
      " {residual: [{lstm: 8}]}, {linear: {bias: false}}]";
  const at::Tensor tokens = at::randint(17, {3, 9}, at::kLong);
  std::vector<std::vector<at::Tensor>> gradients;
  for (const bool recomputed : {false, true}) {
    const auto model = build(layers, kText);
    ASSERT_EQ(model->blocks(), 2);
    model->recompute({recomputed, recomputed});
    torch::manual_seed(5);
    const Output output = model->forward_to_head(tokens);
    ASSERT_TRUE(output.weight.defined());
    output.logits().square().sum().backward();
    gradients.emplace_back();
    for (const auto& tensor : parameters_of(*model)) gradients.back().push_back(tensor.grad());
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i])) << i;
  }
}

TEST(LayersModel, NamesParametersByTheirPlace) {
  const auto model =
      build("[{conv: 4}, {residual: [batch-norm, relu, {conv: 4}]}, flatten, linear]", kImages);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model->parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.0.bias",
                                             "layers.1.layers.0.weight", "layers.1.layers.0.bias",
                                             "layers.1.layers.2.weight", "layers.1.layers.2.bias",
                                             "layers.3.weight", "layers.3.bias"}));
}

TEST(LayersModel, SaysWhatDoesNotFit) {
  const std::vector<std::vector<std::string>> cases = {
      {"[]", "model.layers: needs at least one layer"},
      {"[linear]",
       "model.layers.0.linear: needs a vector or a sequence, but its input is an image "
       "[3, 12, 12]; put flatten, global-avg-pool or to-sequence before it"},
      {"[flatten, {linear: 9}]",
       "model.layers.1: the last layer makes a vector [9], but the data need a vector [5]"},
      {"[{conv: {channels: 4, kernel: 4}}]",
       "model.layers.0.conv: padding 'same' needs an odd kernel"},
      {"[{conv-transpose: {kernel: 3}}]", "model.layers.0.conv-transpose: needs channels"},
      {"[{conv: {channels: 4, kernel: 15, padding: 0}}]",
       "its kernel of 15 is larger than its input, an image [3, 12, 12]"},
      {"[{conv: {channels: 4, groups: 2}}]", "groups of 2 must divide the 3 channels of its input"},
      {"[{conv: {channels: 4, padding: causal}}]", "padding 'causal' is for sequences"},
      {"[{max-pool: 13}]", "its kernel of 13 is larger than its input"},
      {"[{group-norm: 2}]", "groups of 2 must divide the 3 channels"},
      {"[layer-norm]", "use batch-norm or group-norm"},
      {"[{residual: [{conv: 4}]}]",
       "model.layers.0.residual: its layers make an image [4, 12, 12], but its shortcut an image "
       "[3, 12, 12]; give it a shortcut"},
      {"[{residual: [{conv: 3}, flatten, {linear: {features: 4}}, {conv: 3}]}]",
       "model.layers.0.residual.layers.3.conv: needs an image [C, H, W] or a sequence [T, C], but "
       "its input is a vector [4]"},
      {"[{concat: [identity]}]", "needs at least two branches"},
      {"[{concat: [identity, max-pool]}]",
       "branch 1 makes an image [3, 6, 6], which does not go with an image [3, 12, 12]"},
      {"[{lstm: 4}]",
       "needs a sequence [T, C], but its input is an image [3, 12, 12]; put to-sequence before it"},
      {"[{embedding: 4}]", "an embedding is the first layer, for text"},
      {"[relu: 3]", "layers.0.relu: has no options, but '3' is given"},
      {"[{conv: {channels: -1}}]", "layers.0.conv.channels: must be an integer of at least 0"},
      {"[{conv: {channels: 4, padding: around}}]",
       "layers.0.conv.padding: must be auto, same, causal or a number"},
      {"[{convolution: 4}]", "layers.0: unknown layer 'convolution'"},
  };
  for (const auto& one : cases) {
    const std::string message = mistake(one[0]);
    EXPECT_NE(message.find(one[1]), std::string::npos) << one[0] << "\n" << message;
  }
  const std::vector<std::vector<std::string>> sequence_cases = {
      {"[{max-pool: 13}]", "its kernel of 13 is larger than its input, a sequence [12, 3]"},
      {"[{upsample: 2}]", "needs an image [C, H, W], but its input is a sequence [12, 3]"},
      {"[{lstm: 4}, linear]",
       "the last layer makes a sequence [12, 5], but the data need a vector [5]; end with "
       "global-avg-pool or flatten, and linear"},
      {"[flatten, {gru: 4}]", "is a vector [36]; arrays with rows [T, C] are sequences"},
      {"[flatten, max-pool]", "needs an image [C, H, W] or a sequence [T, C], but its input is"}};
  for (const auto& one : sequence_cases) {
    const std::string message = mistake(one[0], kSequences);
    EXPECT_NE(message.find(one[1]), std::string::npos) << one[0] << "\n" << message;
  }
  const std::vector<std::vector<std::string>> text_cases = {
      {"[{embedding: 4}, max-pool, linear]", "pooling lets a position see the tokens"},
      {"[linear]", "put an embedding before it"},
      {"[{embedding: 4}, {lstm: {hidden: 4, bidirectional: true}}, linear]",
       "set bidirectional to false"},
      {"[{embedding: 4}, {attention: {heads: 2, causal: 'false'}}, linear]",
       "sees the tokens that it is to predict"},
      {"[{embedding: 4}, {attention: 3}, linear]", "3 heads do not divide the 4 channels"},
      {"[{embedding: 4}, {conv: {channels: 4, padding: same}}, linear]", "set it to causal"},
      {"[{embedding: 4}, global-avg-pool, linear]",
       "the last layer makes a vector [17], but the data need a sequence [9, 17]"},
  };
  for (const auto& one : text_cases) {
    const std::string message = mistake(one[0], kText);
    EXPECT_NE(message.find(one[1]), std::string::npos) << one[0] << "\n" << message;
  }
}

TEST(LayersModel, IsWrittenAsItWasRead) {
  LayersConfig config(models()), again(models());
  const auto layers =
      "[{conv: 4}, {residual: [{conv: {channels: 4, kernel: 5}}, relu]}, flatten, linear]";
  ASSERT_EQ(read(layers, config), "");
  const auto visit_config = [&config](config::Visitor& visitor) { visit(visitor, config); };
  const config::Node written = config::write_fields(visit_config, node_of(layers));
  config::Problems problems;
  config::read_fields(
      written, [&again](config::Visitor& visitor) { visit(visitor, again); }, problems);
  ASSERT_TRUE(problems.empty()) << problems.list().front().message;
  const auto one = make_layers(config, kImages, InitialWeights(1));
  const auto other = make_layers(again, kImages, InitialWeights(1));
  const at::Tensor x = at::rand({2, 3, 12, 12});
  EXPECT_TRUE(at::equal(one->forward(x), other->forward(x)));
}

}  // namespace
}  // namespace gallop::model
