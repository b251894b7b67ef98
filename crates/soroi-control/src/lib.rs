//! How does the world reach the engine, and decisions the world?
