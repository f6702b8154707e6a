// Position embeddings of other sizes next to timm's, by tests/parity/make_vit_positions.py.
#include "gallop/model/vit.h"

#include <fstream>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/fixtures.h"

namespace gallop::model {
namespace {

std::unique_ptr<Model> vit_for(int64_t height, int64_t width, bool has_token) {
  return make_vit(
      {.patch = 4,
       .width = 4,
       .depth = 1,
       .heads = 1,
       .mlp_ratio = 2,
       .pool = has_token ? "token" : "mean"},
      {.kind = Task::Kind::kImages, .channels = 3, .height = height, .width = width, .classes = 5},
      1);
}

at::Tensor positions_of(const Model& model) {
  for (const auto& [name, tensor] : model.parameters()) {
    if (name == "pos_embed") return tensor.detach();
  }
  return {};
}

// A model for images of 16 x 16 gives for others what one for these gives, all of whose weights are
// equal but the positions, which are those that timm resamples.
TEST(Vit, InterpolatesPositionsAsTimm) {
  std::ifstream file(fixtures() / "vit_positions.json");
  const auto json = nlohmann::json::parse(file);
  ASSERT_EQ(json["cases"].size(), 6U);
  for (const auto& one : json["cases"]) {
    const bool has_token = one["class tokens"] == 1;
    const int64_t height = 4 * one["height"].get<int64_t>(),
                  width = 4 * one["width"].get<int64_t>();
    const auto model = vit_for(16, 16, has_token), other = vit_for(height, width, has_token);
    const auto wanted = other->parameters();
    for (const auto& [name, tensor] : model->parameters()) {
      for (const auto& same : wanted) {
        if (same.name == name && name != "pos_embed") same.tensor.detach().copy_(tensor.detach());
      }
    }
    const auto set = [&](const Model& of, const char* key) {
      const auto values = at::tensor(one[key].get<std::vector<float>>());
      positions_of(of).copy_(values.view_as(positions_of(of)));
    };
    set(*model, "positions");
    set(*other, "resampled");
    const at::Tensor input = at::rand({2, 3, height, width});
    const at::Tensor output = model->forward(input);
    EXPECT_TRUE(output.allclose(other->forward(input), 1e-5, 1e-6)) << height << " x " << width;
    // The gradient flows to the positions.
    output.backward(at::ones_like(output));
    for (const auto& [name, tensor] : model->parameters()) {
      if (name == "pos_embed") EXPECT_GT(tensor.grad().abs().sum().item<double>(), 0);
    }
  }
}

}  // namespace
}  // namespace gallop::model
