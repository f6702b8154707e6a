#include "gallop/data/arrays.h"
#include "gallop/data/data_config.h"
#include "gallop/data/documents.h"
#include "gallop/data/image_module.h"
#include "gallop/data/image_table.h"
#include "gallop/data/labeled_text.h"
#include "gallop/data/readers.h"
#include "gallop/data/segmentation.h"
#include "gallop/data/shared_data.h"
#include "gallop/data/table.h"
#include "gallop/data/tagged_text.h"
#include "gallop/data/text_module.h"
#include "gallop/data/text_pairs.h"

namespace gallop::data {

namespace {

ReadContext read_context_of(const DataContext& context) {
  ReadContext read = read_context(context.config, context.options.cores);
  read.shared = context.options.shared.get();
  return read;
}

template <typename Config, auto read>
std::unique_ptr<DataModule> images(const Config& config, const DataContext& context) {
  return make_image_module(read(config, read_context_of(context)), context);
}

std::unique_ptr<DataModule> text(const TextConfig& config, const DataContext& context) {
  return make_text_module(read_text(config, read_context_of(context)), config.unit, context);
}

}  // namespace

DataModuleRegistry built_in_data_modules() {
  DataModuleRegistry registry("data set");
  registry
      .add("fashion-mnist", "28 x 28 gray images of clothes, 10 classes",
           images<FashionMnistConfig, read_fashion_mnist>)
      .add("mnist", "28 x 28 gray images of digits, 10 classes", images<MnistConfig, read_mnist>)
      .add("cifar10", "32 x 32 color images, 10 classes", images<Cifar10Config, read_cifar10>)
      .add("cifar100", "32 x 32 color images, 100 or 20 classes",
           images<Cifar100Config, read_cifar100>)
      .add("folder", "a folder of classes with image files: JPEG, PNG, WebP, GIF, TIFF",
           images<FolderConfig, read_folder>)
      .add("tar", "WebDataset shards with image files", images<TarConfig, read_tar>)
      .add("fake-images", "random images of random classes, to measure speed",
           images<FakeImagesConfig, read_fake_images>)
      .add("image-table",
           "images listed in a table with their targets: classes, multiple labels or numbers",
           open_image_table)
      .add("segmentation", "images with masks: a class for each pixel", open_segmentation)
      .add("table",
           "a table (CSV, JSON Lines or Parquet) of numbers, categories and dates, to predict any "
           "of its columns",
           open_table)
      .add("csv", "a table of numbers: regression, classification or multi-label classification",
           open_csv)
      .add("arrays", "NumPy arrays, one for each input and target of a model", open_arrays)
      .add("text", "text as a sequence of characters or bytes", text)
      .add("documents",
           "separate texts for a causal language model, from CSV, JSON Lines or Parquet",
           open_documents)
      .add("labeled-text", "texts with one class each, from CSV, JSON Lines or Parquet",
           open_labeled_text)
      .add("tagged-text", "sentences with a tag for each word, as in CoNLL-2003", open_tagged_text)
      .add("text-pairs", "matching pairs of texts, from CSV, JSON Lines or Parquet",
           open_text_pairs);
  return registry;
}

}  // namespace gallop::data
