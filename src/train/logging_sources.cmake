# What a run writes down while it trains. Knows nothing of tensors, so it is a library of its own.
set(LACUNA_TRAIN_LOGGING_SOURCES ${CMAKE_CURRENT_LIST_DIR}/metrics_log.cpp ${CMAKE_CURRENT_LIST_DIR}/tensorboard.cpp)
lacuna_library(train_log SOURCES ${LACUNA_TRAIN_LOGGING_SOURCES} LINKS lacuna_base nlohmann_json::nlohmann_json)
