#include "gallop/compile/graph_text.h"

#include <algorithm>

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/compile/graph.h"
#include "gallop/compile/graph_json.h"
#include "gallop/compile/graph_stages.h"
#include "gallop/compile/graph_svg.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

// Two layers; a bias that stays, a count that changes.
struct Network {
  at::Tensor weight = at::full({5, 4}, 0.5), bias = at::ones({5}), count = at::zeros({});
  at::Tensor table = at::ones({3, 5});

  Tensors operator()(const Tensors& arguments) const {
    count.add_(2);
    const at::Tensor hidden = at::relu(at::addmm(bias, arguments[0], weight.t()));
    const at::Tensor all = at::cat({hidden, hidden.relu(), hidden.abs(), table}, 0);
    return {at::mm(all.view({5, 12}).t(), arguments[1]).sum()};
  }

  GraphNames names() const {
    return {.inputs = {"input"}, .state = {{"fc.weight", weight}, {"fc.bias", bias}, {"n", count}}};
  }
};

const Tensors kArguments = {at::ones({3, 4}), at::ones({5, 2})};

GraphListing listing_of(const Network& network) {
  const Recording recording = record(network, kArguments);
  GraphTimes times{.seconds = std::vector<double>(recording.graph.nodes.size(), 1e-3), .runs = 7};
  times.seconds[1] = 3e-3;
  return list_graph(recording.graph, network.names(), times);
}

const ListedNode& find(const GraphListing& listing, const std::string& op) {
  const auto found = std::find_if(listing.nodes.begin(), listing.nodes.end(),
                                  [&](const ListedNode& node) { return node.op == op; });
  EXPECT_NE(found, listing.nodes.end()) << op;
  return *found;
}

TEST(GraphText, NamesTheInputsOfANode) {
  const GraphListing listing = listing_of({});
  EXPECT_EQ(find(listing, "aten::addmm").text_of_call(2),
            "aten::addmm(fc.bias, input, fc.weight^T)");
  EXPECT_EQ(find(listing, "aten::mm").text_of_call(2), "aten::mm(%5[5x12]^T, argument 1)");
  EXPECT_EQ(find(listing, "aten::relu").text_of_call(2), "aten::relu(%1)");
  EXPECT_EQ(find(listing, "aten::relu").makers, std::vector<int64_t>{1});
}

TEST(GraphText, ShortensLists) {
  const ListedNode node = find(listing_of({}), "aten::cat");
  EXPECT_EQ(node.text_of_call(2), "aten::cat([%2, %3, +2])");
  EXPECT_EQ(node.text_of_call(9), "aten::cat([%2, %3, %4, (state 0)])");
}

TEST(GraphText, DistinguishesResultsAndWrites) {
  const GraphListing listing = listing_of({});
  EXPECT_EQ(listing.nodes[0].text_of_results(2), "writes n");
  EXPECT_EQ(listing.nodes[0].text_of_call(2), "aten::add_.Scalar(n, other=2)");
  EXPECT_EQ(find(listing, "aten::addmm").text_of_results(2), "%1 fp32 3x5");
  EXPECT_EQ(find(listing, "aten::sum").text_of_results(2), "%7 fp32 scalar");
  const ListedNode many{.results = {{"%1.0", "fp32 2"},
                                    {"%1.1", "bf16 3"},
                                    {"%1.2", "bf16 4"},
                                    {"a", "fp32 2", false},
                                    {"b", "fp32 2", false}}};
  EXPECT_EQ(many.text_of_results(2), "%1.0 fp32 2, .1 bf16 3, +1, writes a, b");
  EXPECT_EQ(many.text_of_results_within(30), "%1.0 fp32 2, +2, writes 2");
  EXPECT_EQ(many.text_of_results_within(14), "%1.0 fp32 2...");
}

TEST(GraphText, SumsTimesByKindAndOperator) {
  const GraphListing listing = listing_of({});
  EXPECT_DOUBLE_EQ(listing.seconds, 10e-3);
  EXPECT_EQ(listing.operators.front().op, "aten::addmm");
  EXPECT_DOUBLE_EQ(listing.share_of(listing.operators.front().seconds), 0.3);
  EXPECT_GT(listing.planned_bytes, 0);
  const auto kinds = listing.kinds();
  EXPECT_STREQ(name_of(kinds.front().kind), "GEMMs");
  EXPECT_EQ(kinds.front().count, 2);
  const std::string text = summary_text(listing, 1);
  EXPECT_NE(text.find("8 nodes, 10.0000 ms (medians of 7 runs)"), std::string::npos) << text;
  EXPECT_NE(text.find("6 more"), std::string::npos) << text;
}

TEST(GraphText, HasOneLineANodeOfLimitedWidth) {
  const GraphListing listing = listing_of({});
  std::istringstream lines(nodes_text(listing, 60));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 60) << line;
  EXPECT_EQ(count, 1 + 8);
  EXPECT_NE(nodes_text(listing, 0).find("aten::cat([%2, %3, %4, (state 0)])"), std::string::npos);
}

TEST(GraphText, WritesEverythingAsJson) {
  const auto object = graph_json(listing_of({}));
  ASSERT_EQ(object["nodes"].size(), 8);
  EXPECT_EQ(object["nodes"][5]["arguments"][0]["values"].size(), 4);
  EXPECT_EQ(object["nodes"][0]["writes"][0]["name"], "n");
  EXPECT_DOUBLE_EQ(object["nodes"][1]["fraction"], 0.3);
}

// A minimal parser that checks that every element is closed and text is escaped.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t i = 0; i < xml.size(); ++i) {
    if (xml.compare(i, 9, "<![CDATA[") == 0) {
      i = xml.find("]]>", i) + 2;
    } else if (xml[i] == '<') {
      const size_t end = xml.find('>', i);
      ASSERT_NE(end, std::string::npos);
      const std::string tag = xml.substr(i + 1, end - i - 1);
      EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
      EXPECT_EQ(tag.find('<'), std::string::npos) << tag;
      if (tag[0] == '/') {
        ASSERT_FALSE(open.empty());
        EXPECT_EQ(tag.substr(1), open.back());
        open.pop_back();
      } else if (tag.back() != '/') {
        open.push_back(tag.substr(0, tag.find(' ')));
      }
      i = end;
    } else if (xml[i] == '&') {
      EXPECT_LT(xml.find(';', i) - i, 6) << xml.substr(i, 20);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(GraphSvg, IsWellFormedAndHasEveryNodeAndArc) {
  const GraphListing listing = listing_of({});
  const std::string svg = graph_svg(listing, "a <b> & \"c\"");
  expect_well_formed(svg);
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("aten::addmm(fc.bias, input, fc.weight^T)"), std::string::npos);
  size_t arcs = 0;
  for (const ListedNode& node : listing.nodes) {
    EXPECT_NE(svg.find("data-node=\"" + std::to_string(node.number) + "\""), std::string::npos);
    arcs += node.makers.size();
  }
  size_t drawn = 0;
  for (size_t at = svg.find("<path"); at != std::string::npos; at = svg.find("<path", at + 1)) {
    ++drawn;
  }
  EXPECT_EQ(drawn, arcs);
  EXPECT_GT(arcs, 6);
}

TEST(GraphStages, TimesEveryStageWithoutSideEffects) {
  const Network network;
  const GraphStages found =
      graph_stages(network, kArguments, network.names(), {.timing = {.seconds = 0, .least = 3}});
  ASSERT_TRUE(found.refusal.empty()) << found.refusal;
  ASSERT_EQ(found.stages.size(), all_stages().size());
  EXPECT_EQ(found.stages.front().name, "recorded");
  for (const auto& [name, listing] : found.stages) {
    EXPECT_EQ(listing.runs, 3) << name;
    EXPECT_GT(listing.seconds, 0) << name;
  }
  EXPECT_EQ(network.count.item<float>(), 0);
  const GraphListing& first = found.stages.front().listing;
  EXPECT_TRUE(changes_of(first, first).empty());
  const std::string text = stages_text(found.stages);
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')),
            1 + found.stages.size());
}

TEST(GraphStages, ReturnsASingleStage) {
  const Network network;
  const TimingConfig once{.seconds = 0, .least = 1};
  const auto only = [&](const std::string& stage) {
    return graph_stages(network, kArguments, network.names(), {.only = stage, .timing = once});
  };
  ASSERT_EQ(only("cse").stages.size(), 1);
  EXPECT_EQ(only("cse").stages[0].name, "cse");
  ASSERT_EQ(only("last").stages.size(), 1);
  EXPECT_EQ(only("last").stages[0].name, all_stages().back().name);
  EXPECT_THROW(only("merge-eqal"), UsageError);
  EXPECT_THROW(
      graph_stages(network, kArguments, network.names(), {.only = "cse", .passes_off = {"cse"}}),
      UsageError);
}

TEST(GraphStages, ReportsWhyThereIsNoGraph) {
  const auto reads = [](const Tensors& arguments) -> Tensors {
    return {arguments[0].mul(arguments[0].sum().item<float>())};
  };
  const GraphStages found = graph_stages(reads, {at::ones({2})}, {});
  EXPECT_TRUE(found.stages.empty());
  EXPECT_NE(found.refusal.find("reads a value on the host"), std::string::npos) << found.refusal;

  const auto counts = [calls = 0](const Tensors& arguments) mutable -> Tensors {
    return {arguments[0].mul(++calls)};
  };
  EXPECT_NE(graph_stages(counts, {at::ones({2})}, {}).refusal.find("two recordings differ"),
            std::string::npos);
}

TEST(Recorder, IgnoresTablesThatAreCreatedOnce) {
  std::vector<at::Tensor> tables(3);
  const auto function = [&](const Tensors& arguments) -> Tensors {
    at::Tensor sum = arguments[0];
    for (at::Tensor& table : tables) {
      if (!table.defined()) {
        table = at::empty({2});
        table.mutable_data_ptr<float>()[0] = table.mutable_data_ptr<float>()[1] = 1;
      }
      sum = sum.add(table);
    }
    return {sum};
  };
  const auto trial = [&] { return record(function, {at::ones({2})}); };
  EXPECT_TRUE(retrace_until_stable(trial).refusal.empty());
}

}  // namespace
}  // namespace gallop::compile
