#include "gallop/optim/groups.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/optim/optimizer.h"
#include "unit/base/error_of.h"

namespace gallop::optim {
namespace {

NamedTensors parameters_of(const std::vector<std::string>& names) {
  NamedTensors parameters;
  for (const std::string& name : names) {
    const bool is_vector = name.ends_with("bias");
    parameters.push_back({name, is_vector ? at::ones({3}) : at::ones({3, 3})});
  }
  return parameters;
}

const std::vector<std::string> kNames = {"stem.weight",       "blocks.0.fc1.weight",
                                         "blocks.0.fc1.bias", "blocks.1.fc1.weight",
                                         "head.weight",       "head.bias"};

TEST(Groups, TheLastMatchTakesPrecedence) {
  const GroupsConfig config{.groups = {{.match = "*.bias", .lr_factor = 2, .weight_decay = 0.5},
                                       {.match = "head.*", .lr_factor = 10}}};
  const ParameterOptions options = options_of(parameters_of(kNames), 0.1, false, config);
  EXPECT_EQ(options.lr_factors, (std::vector<double>{1, 1, 2, 1, 10, 10}));
  EXPECT_EQ(options.weight_decays, (std::vector<double>{0.1, 0.1, 0.5, 0.1, 0.1, 0.5}));
}

TEST(Groups, KeepWhatLaterOnesDoNotSet) {
  const GroupsConfig config{
      .groups = {{.match = "*.bias", .lr_factor = 2}, {.match = "head.*", .weight_decay = 0.5}}};
  const ParameterOptions options = options_of(parameters_of(kNames), 0.1, false, config);
  EXPECT_EQ(options.lr_factors, (std::vector<double>{1, 1, 2, 1, 1, 2}));
  EXPECT_EQ(options.weight_decays, (std::vector<double>{0.1, 0.1, 0, 0.1, 0.5, 0.5}));
}

TEST(Groups, RejectALayerDecayWithoutLayers) {
  EXPECT_NE(error_of([] {
              options_of(parameters_of({"stem.weight", "layer1.weight", "head.bias"}), 0, true,
                         {.layer_decay = 0.5});
            }).find("optimizer.layer_decay needs numbered blocks"),
            std::string::npos);
}

TEST(Groups, NumberLayersFromTheEnd) {
  const GroupsConfig config{.layer_decay = 0.5, .groups = {{.match = "stem.*", .lr_factor = 3}}};
  const ParameterOptions options = options_of(parameters_of(kNames), 0, true, config);
  EXPECT_EQ(options.lr_factors, (std::vector<double>{3 * 0.125, 0.25, 0.25, 0.5, 1, 1}));
  // Without parameters after the blocks, the last block is the last layer.
  EXPECT_EQ(options_of(parameters_of({"layers.0.weight", "layers.1.weight"}), 0, true,
                       {.layer_decay = 0.5})
                .lr_factors,
            (std::vector<double>{0.5, 1}));
}

TEST(Groups, RejectPatternsWithoutAMatch) {
  try {
    options_of(parameters_of(kNames), 0, true, {.groups = {{.match = "head.weigth"}}});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'head.weigth' (did you mean 'head.weight'?)"),
              std::string::npos)
        << error.what();
  }
}

// Every optimizer reads groups from a recipe and applies them.
TEST(Groups, AreSupportedByEveryOptimizer) {
  const OptimizerRegistry registry = built_in_optimizers();
  for (const std::string& name : registry.names()) {
    config::Component chosen(registry, name);
    config::Problems problems;
    const auto visit = [&](config::Visitor& visitor) { chosen.visit_fields(visitor); };
    config::read_fields(
        config::parse_yaml("{groups: [{match: head.*, lr_factor: 0, weight_decay: 0}]}", "test"),
        visit, problems);
    problems.throw_if_any();
    const NamedTensors parameters = parameters_of(kNames);
    const auto optimizer = registry.build(chosen, parameters);
    for (const auto& parameter : parameters) {
      parameter.tensor.mutable_grad() = at::full(parameter.tensor.sizes(), 0.5);
    }
    optimizer->step(at::full({}, 0.1));
    EXPECT_FALSE(parameters[0].tensor.equal(at::ones({3, 3}))) << name;
    EXPECT_TRUE(parameters[4].tensor.equal(at::ones({3, 3}))) << name;
    EXPECT_TRUE(parameters[5].tensor.equal(at::ones({3}))) << name;
    const std::string shown = config::to_yaml(config::write_fields(visit, {}), false);
    EXPECT_NE(shown.find("{match: \"head.*\", lr_factor: 0, weight_decay: 0}"), std::string::npos)
        << shown;
  }
}

TEST(Groups, AreCheckedItemByItem) {
  const OptimizerRegistry registry = built_in_optimizers();
  config::Component chosen(registry, "sgd");
  const auto messages = [&](const std::string& yaml) {
    config::Problems problems;
    config::read_fields(
        config::parse_yaml(yaml, "test"),
        [&](config::Visitor& visitor) { chosen.visit_fields(visitor); }, problems);
    std::string text;
    for (const config::Problem& problem : problems.list()) {
      text += problem.key + ": " + problem.message + "\n";
    }
    return text;
  };
  EXPECT_NE(messages("{groups: [{match: a, lr_factr: 2}]}")
                .find("groups.0.lr_factr: unknown key 'lr_factr'; did you mean 'lr_factor'?"),
            std::string::npos);
  EXPECT_NE(messages("{groups: [{}, {match: a, lr_factor: -1}]}").find("groups.1.lr_factor: must"),
            std::string::npos);
  EXPECT_NE(messages("{groups: 3}").find("groups: must be a list of maps"), std::string::npos);
  EXPECT_NE(messages("{groups: [3]}").find("groups.0: must be a map"), std::string::npos);
}

}  // namespace
}  // namespace gallop::optim
