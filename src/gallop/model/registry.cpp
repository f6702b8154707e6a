#include "gallop/model/airbench.h"
#include "gallop/model/exported/exported_model.h"
#include "gallop/model/gpt.h"
#include "gallop/model/layer/layer.h"
#include "gallop/model/layers_model.h"
#include "gallop/model/mixer.h"
#include "gallop/model/mlp.h"
#include "gallop/model/model.h"
#include "gallop/model/resnet.h"
#include "gallop/model/tabm.h"
#include "gallop/model/tabular_mlp.h"
#include "gallop/model/vit.h"

namespace gallop::model {

bool embeds_categories(const std::string& model) {
  return model == "tabular-mlp" || model == "tabm";
}

ModelRegistry built_in_models() {
  ModelRegistry registry;
  registry.layers = built_in_layers();
  registry.add("mlp", "fully connected layers for numbers or flattened images", make_mlp)
      .add("resnet", "residual network, CIFAR form (6n+2) or ImageNet form (18, 34, 50)",
           make_resnet)
      .add("airbench", "whitened patches and a few wide stages, for short training on small images",
           make_airbench)
      .add("vit", "vision transformer on square patches", make_vit)
      .add("mlp-mixer", "MLP-Mixer on square patches", make_mixer)
      .add("gpt", "GPT-2-style transformer for text; bidirectional for masked-lm", make_gpt)
      .add("tabular-mlp", "fully connected layers on embedded numbers and categories of a table",
           make_tabular_mlp)
      .add("tabm", "ensemble of tabular MLPs with shared weights, averaged for prediction (TabM)",
           make_tabm)
      .add("layers", "a network composed of the layers that the recipe lists", make_layers)
      .add("exported", "PyTorch model from an archive of torch.export.save() (.pt2)",
           make_exported);
  return registry;
}

}  // namespace gallop::model
